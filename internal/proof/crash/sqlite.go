package crash

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"time"

	"modernc.org/sqlite"

	"github.com/surehook/surehook/internal/proof/faultdriver"
)

// openSQLite opens a file whose transactions spring the trap; t may be nil.
func openSQLite(path string, t *trap) (*sql.DB, error) {
	inner, err := faultdriver.Open(&sqlite.Driver{}, "file:"+path+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(20000)")
	if err != nil {
		return nil, err
	}
	if t == nil {
		return sql.OpenDB(inner), nil
	}
	return sql.OpenDB(faultdriver.Wrap(inner, t.aroundSQLite)), nil
}

// aroundSQLite is a faultdriver.Hook.
func (t *trap) aroundSQLite(_ context.Context, c faultdriver.Call, do func() error) error {
	m, _ := c.Conn.Note.(*marks)
	if m == nil {
		m = &marks{}
		c.Conn.Note = m
	}
	switch c.Kind {
	case faultdriver.Begin, faultdriver.Rollback:
		m.names = nil
	case faultdriver.Exec, faultdriver.Query:
		err := do()
		for _, name := range m.add(c.Text, c.Args) {
			t.at(name + " " + inside)
		}
		return err
	case faultdriver.Commit:
		if m.due(t, before) {
			t.spring()
		}
		if m.due(t, committing) {
			go t.springSoon()
		}
		err := do()
		if err == nil && m.due(t, committed) {
			t.spring()
		}
		m.names = nil
		return err
	}
	return do()
}

// springSoon springs at some moment of a commit.
func (t *trap) springSoon() {
	for end := time.Now().Add(rand.N(2 * time.Millisecond)); time.Now().Before(end); { // a sleep is not that exact
	}
	t.spring()
}
