package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/console"
)

// A page has as many subscribers as there is room for what they hold, and the pages together
// have all.
func TestPagesOfLargeSubscribersAreBounded(t *testing.T) {
	t.Parallel()
	db, err := openDatabase(t.Context(), options{database: filepath.Join(t.TempDir(), "a.db")}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(db.close)
	require.NoError(t, db.migrate(t.Context()))
	s := &service{db: db}
	const many, large = 8, 1 << 20
	require.NoError(t, db.inTx(t.Context(), func(tx *sql.Tx) error {
		for i := range many {
			attributes := Attributes{"a": json.RawMessage(`"` + strings.Repeat("x", large) + `"`)}
			if err := s.writeSubscriber(t.Context(), tx, &Subscriber{ID: fmt.Sprintf("sub_%02d", i), Name: "Acme", Attributes: attributes, Version: 1, CreatedAt: time.UnixMicro(int64(i / 2))}, ""); err != nil {
				return err
			}
		}
		return nil
	}))
	for _, name := range []string{"", "Ac"} {
		var ids []string
		for at := (&subscriberCursor{created: 1<<63 - 1}); at != nil; {
			var page []Subscriber
			page, at, err = s.subscribers(t.Context(), name, *at, 200)
			require.NoError(t, err)
			require.NotEmpty(t, page)
			require.Less(t, len(page)*large, maxSubscribersBytes+2*large)
			for _, sub := range page {
				ids = append(ids, sub.ID)
			}
		}
		require.Len(t, ids, many)
		require.True(t, slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) }), "%v", ids)
	}
}

// However many subscribers there are, a page of a name looks at a bounded number of them. The
// pages together have all.
func TestPagesOfANameAreBounded(t *testing.T) {
	t.Parallel()
	db, err := openDatabase(t.Context(), options{database: filepath.Join(t.TempDir(), "a.db")}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(db.close)
	require.NoError(t, db.migrate(t.Context()))
	const many = 2*maxSubscribersLooked + 100
	require.NoError(t, db.inTx(t.Context(), func(tx *sql.Tx) error {
		for i := range many {
			name := "other"
			if i == 0 || i == many-1 || i == many/2 {
				name = "Acme"
			}
			if _, err := tx.ExecContext(t.Context(), `INSERT INTO server_subscribers (id, name, attributes, version, created_at, updated_at) VALUES (?, ?, '{}', 1, ?, 0)`, fmt.Sprintf("sub_%05d", i), name, i/2); err != nil {
				return err
			}
		}
		return nil
	}))
	s := &service{db: db}
	var ids []string
	pages := 0
	for at := (subscriberCursor{created: 1<<63 - 1}); ; pages++ {
		page, next, err := s.subscribers(t.Context(), "Acme", at, 2)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), 1, "the next one is further away than a page looks")
		for _, sub := range page {
			ids = append(ids, sub.ID)
		}
		if next == nil {
			break
		}
		at = *next
	}
	require.Equal(t, 2, pages)
	require.Equal(t, []string{fmt.Sprintf("sub_%05d", many-1), fmt.Sprintf("sub_%05d", many/2), "sub_00000"}, ids)

	found, cursor, err := consoleCustomers{s}.Customers(t.Context(), console.CustomerQuery{Text: "acme", Limit: 2})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, fmt.Sprintf("sub_%05d", maxSubscribersLooked-1), cursor)

	// The last page leads to no other one.
	for _, q := range []console.CustomerQuery{{Cursor: fmt.Sprintf("sub_%05d", many-3), Limit: 2}, {Text: "acme", Cursor: fmt.Sprintf("sub_%05d", many-3), Limit: 1}} {
		found, cursor, err = consoleCustomers{s}.Customers(t.Context(), q)
		require.NoError(t, err)
		require.Len(t, found, q.Limit)
		require.Empty(t, cursor)
	}
	found, cursor, err = consoleCustomers{s}.Customers(t.Context(), console.CustomerQuery{Cursor: fmt.Sprintf("sub_%05d", many-4), Limit: 2})
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, fmt.Sprintf("sub_%05d", many-2), cursor)
}
