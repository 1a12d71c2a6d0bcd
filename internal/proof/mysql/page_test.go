//go:build linux

package mysql_test

import (
	"context"
	"database/sql"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The statements of docs/receiving-without-go.md tell a duplicate and a stale event, at the
// server's own isolation level.
func testPage(t *testing.T, s server) {
	for name, settings := range map[string][]string{"rows that changed": nil, "rows that were found": {"clientFoundRows=true"}} {
		t.Run(name, func(t *testing.T) {
			db := s.open(t, s.database(t), settings...)
			for _, table := range statementsOf(t, "tables.mysql.sql") {
				_, err := db.ExecContext(t.Context(), table)
				require.NoError(t, err)
			}
			begin := func() *sql.Tx {
				tx, err := db.BeginTx(t.Context(), nil)
				require.NoError(t, err)
				t.Cleanup(func() { _ = tx.Rollback() })
				return tx
			}
			take := func(id, object string, version int64) string {
				t.Helper()
				tx := begin()
				result, err := takeByPage(t.Context(), tx, statementsOf(t, "take.mysql.sql"), id, object, version)
				require.NoError(t, err)
				require.NoError(t, tx.Commit())
				return result
			}
			require.Equal(t, "applied", take("evt_1", "in_1", 3))
			require.Equal(t, "duplicate", take("evt_1", "in_1", 3))
			require.Equal(t, "duplicate", take("evt_1", "in_1", 4))
			require.Equal(t, "stale", take("evt_2", "in_1", 3))
			require.Equal(t, "stale", take("evt_3", "in_1", 2))
			require.Equal(t, "duplicate", take("evt_3", "in_1", 9))
			require.Equal(t, "applied", take("evt_4", "in_1", 4))
			require.Equal(t, "applied", take("EVT_1", "IN_1", 1), "another id, and another object")
			require.Equal(t, "applied", take("evt_1 ", "in_1 ", 1), "another id, and another object")
			longest := strings.Repeat("i", 128)
			require.Equal(t, "applied", take(longest[1:]+"1", strings.Repeat("o", 254)+"1", 1))
			require.Equal(t, "applied", take(longest[1:]+"2", strings.Repeat("o", 254)+"2", 1))

			// A second one with the same id waits for the first, which commits or not.
			for _, commits := range []bool{true, false} {
				id := "evt_" + strconv.FormatBool(commits)
				first, second, results := begin(), begin(), make(chan string)
				statements := statementsOf(t, "take.mysql.sql")
				_, err := takeByPage(t.Context(), first, statements, id, id, 1)
				require.NoError(t, err)
				go func() {
					defer close(results)
					if result, err := takeByPage(t.Context(), second, statements, id, id, 1); err == nil {
						results <- result
					}
				}()
				if commits {
					require.NoError(t, first.Commit())
					require.Equal(t, "duplicate", <-results)
				} else {
					require.NoError(t, first.Rollback())
					require.Equal(t, "applied", <-results)
				}
			}
		})
	}
}

// takeByPage runs the statements with other values, and reads what they changed as the page
// says.
func takeByPage(ctx context.Context, tx *sql.Tx, statements []string, id, object string, version int64) (result string, err error) {
	values := strings.NewReplacer("evt_1", id, "in_1", object, "version = 3", "version = "+strconv.FormatInt(version, 10), "version < 3", "version < "+strconv.FormatInt(version, 10))
	for i, statement := range statements {
		done, err := tx.ExecContext(ctx, values.Replace(statement))
		if err != nil {
			return "", err
		}
		switch changed, err := done.RowsAffected(); {
		case err != nil:
			return "", err
		case changed == 0 && i == 0:
			return "duplicate", nil
		case changed == 0 && i == len(statements)-1:
			return "stale", nil
		}
	}
	return "applied", nil
}

// statementsOf returns the statements of a block of the page.
func statementsOf(t *testing.T, block string) []string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/receiving-without-go.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), "<!-- run: "+block+" -->\n```sql\n")
	require.True(t, found, block)
	text, _, found = strings.Cut(text, ";\n```\n")
	require.True(t, found, block)
	return strings.Split(text, ";\n")
}
