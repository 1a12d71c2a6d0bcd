package postgres

import (
	"regexp"
	"strings"
)

// rowwise is a statement over rows that are given by their columns, as arrays. At ordinary
// rates there is one row, and then the values themselves are the parameters: to take an
// array apart costs the server more than to change a row.
type rowwise struct{ one, many string }

// unnested matches the arrays that a statement takes apart.
var unnested = regexp.MustCompile(`unnest\((\$\d+::\w+\[\](?:,\s+\$\d+::\w+\[\])*)\)( WITH ORDINALITY)?`)

// overRows takes a statement that reads its rows from an unnest of parameters, each with
// its type.
func overRows(many string) rowwise {
	return rowwise{many: many, one: unnested.ReplaceAllStringFunc(many, func(arrays string) string {
		parts := unnested.FindStringSubmatch(arrays)
		values := strings.ReplaceAll(parts[1], "[]", "")
		if parts[2] != "" {
			values += ", 1::bigint" // as an ordinality is
		}
		return `(SELECT ` + values + `)`
	})}
}

// of returns the statement for a number of rows.
func (s *rowwise) of(rows int) string {
	if rows == 1 {
		return s.one
	}
	return s.many
}

// given returns the parameter of a rowwise statement for a column.
func given[V any](all []V) any {
	if len(all) == 1 {
		return all[0]
	}
	return all
}

// field is given for a column that is computed from rows.
func field[T, V any](rows []T, value func(T) V) any {
	if len(rows) == 1 {
		return value(rows[0])
	}
	return column(rows, value)
}
