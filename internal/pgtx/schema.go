package pgtx

import (
	"regexp"

	"github.com/surehook/surehook/internal/ident"
)

var tableNames = regexp.MustCompile(`\bsurehook_`)

// InSchema returns a statement with the schema's name, quoted, in front of each name that
// begins with "surehook_". No text that is quoted in the statement may begin so. With an
// empty schema the statement stays as it is, and the search_path decides.
func InSchema(schema, statement string) string {
	if schema == "" {
		return statement
	}
	return tableNames.ReplaceAllLiteralString(statement, ident.QuoteSchema(schema)+".surehook_")
}
