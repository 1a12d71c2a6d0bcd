package crash

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/internal/proof/faultdriver"
)

// openPostgres opens a pool whose transactions spring the trap; t may be nil.
func openPostgres(ctx context.Context, dsn string, t *trap) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 12
	if t != nil {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			inner, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			w := &wire{trap: t}
			w.Conn = faultdriver.Conn{Conn: inner, OnWrite: w.write}
			return w, nil
		}
		cfg.ConnConfig.Tracer = t
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}

// wire is a connection, and the transaction that it is in.
type wire struct {
	faultdriver.Conn
	trap  *trap
	marks marks
	// ends: a commit is about to be sent. broken: it is sent together with a
	// statement by which a transaction is recognised, so the middle of the
	// transaction is in the middle of the bytes.
	ends, broken bool
}

// commitName is the name under which pgx prepares a commit.
var commitName = func() []byte {
	sum := sha256.Sum256([]byte("COMMIT"))
	return []byte("stmtcache_" + hex.EncodeToString(sum[:24]))
}()

// commits reports whether the written bytes execute a commit: by name, in a batch, or
// alone, as a simple query. Bytes that only prepare a commit contain its text, too.
func commits(b []byte) bool {
	if b[0] == 'Q' {
		return bytes.Contains(bytes.ToLower(b), []byte("commit"))
	}
	return bytes.Contains(b, commitName) && !bytes.Contains(b, []byte("COMMIT"))
}

func (w *wire) write(b []byte, write func(b []byte) (int, error)) (int, error) {
	if !w.ends || len(b) == 0 || !commits(b) {
		return write(b)
	}
	w.ends = false
	if w.broken {
		_, _ = write(b[:len(b)/2])
		w.trap.spring()
	}
	n, err := write(b)
	if w.marks.due(w.trap, committing) {
		w.trap.spring()
	}
	return n, err
}

// seen notes statements that are about to be sent.
func (w *wire) seen(queries []*pgx.QueuedQuery) (fresh []string) {
	for _, q := range queries {
		switch word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(q.SQL)), " "); word {
		case "begin", "rollback":
			w.marks.names = nil
		case "commit":
			w.ends = true
		default:
			fresh = append(fresh, w.marks.add(q.SQL, q.Arguments)...)
		}
	}
	if w.ends {
		for _, name := range fresh {
			w.broken = w.broken || w.trap.due(name+" "+inside)
		}
		if w.marks.due(w.trap, before) {
			w.trap.spring()
		}
		return nil
	}
	return fresh
}

type freshKey struct{}

func (t *trap) start(ctx context.Context, c *pgx.Conn, queries []*pgx.QueuedQuery) context.Context {
	return context.WithValue(ctx, freshKey{}, c.PgConn().Conn().(*wire).seen(queries))
}

func (t *trap) end(ctx context.Context, c *pgx.Conn, ok bool) {
	if !ok {
		return
	}
	fresh, _ := ctx.Value(freshKey{}).([]string)
	for _, name := range fresh {
		t.at(name + " " + inside)
	}
	w := c.PgConn().Conn().(*wire)
	if len(w.marks.names) > 0 && c.PgConn().TxStatus() == 'I' && w.marks.due(t, committed) {
		t.spring()
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (t *trap) TraceQueryStart(ctx context.Context, c *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	return t.start(ctx, c, []*pgx.QueuedQuery{{SQL: d.SQL, Arguments: d.Args}})
}

// TraceQueryEnd implements pgx.QueryTracer.
func (t *trap) TraceQueryEnd(ctx context.Context, c *pgx.Conn, d pgx.TraceQueryEndData) {
	t.end(ctx, c, d.Err == nil)
}

// TraceBatchStart implements pgx.BatchTracer.
func (t *trap) TraceBatchStart(ctx context.Context, c *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	return t.start(ctx, c, d.Batch.QueuedQueries)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (t *trap) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (t *trap) TraceBatchEnd(ctx context.Context, c *pgx.Conn, d pgx.TraceBatchEndData) {
	t.end(ctx, c, d.Err == nil)
}
