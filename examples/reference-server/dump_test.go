package main_test

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// dump is everything that a database holds, a line for each row.
func dump(t *testing.T, p place) []string {
	t.Helper()
	db := p.open(t)
	list := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	if p.driver == "pgx" {
		list = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
	}
	lines := []string{}
	for _, table := range each(t, db, list) {
		for _, row := range each(t, db, "SELECT * FROM "+table) {
			lines = append(lines, table+": "+row)
		}
	}
	slices.Sort(lines)
	return lines
}

func each(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer rows.Close()
	names, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		values, to := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			to[i] = &values[i]
		}
		require.NoError(t, rows.Scan(to...))
		line := ""
		for i, v := range values {
			if b, ok := v.([]byte); ok {
				v = string(b)
			}
			if i > 0 {
				line += " | "
			}
			line += fmt.Sprint(v)
		}
		all = append(all, line)
	}
	require.NoError(t, rows.Err())
	return all
}
