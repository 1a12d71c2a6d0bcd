package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/sqlite"
)

// databasePlace says which database is meant.
type databasePlace struct {
	database, file, schema string
}

func (o *databasePlace) flags(f *flag.FlagSet) {
	f.StringVar(&o.database, "database", "", "the service's database: an SQLite `file`, a postgres:// URL or host=… dbname=… (or SUREHOOK_DATABASE). Others can see it in the list of processes: give the password by PGPASSWORD, or the URL by -database-file")
	f.StringVar(&o.file, "database-file", "", "a `file` that has in it what -database would say")
	f.StringVar(&o.schema, "schema", "", "the `schema` of the tables in PostgreSQL (default: by the search_path)")
}

// database is an open one. Both kinds work in a *sql.Tx.
type database struct {
	path   string // of the SQLite file; "": it is PostgreSQL
	schema string
	sql    *sql.DB
	pool   *pgxpool.Pool // of PostgreSQL
	store  store
}

type store interface {
	surehook.Store[*sql.Tx]
	feed.Store
	Migrate(ctx context.Context) error
	Restored(ctx context.Context, convert sender.Convert) (sender.Restoration, error)
}

func (d *database) postgres() bool { return d.path == "" }

func (d *database) close() {
	_ = d.sql.Close()
	if d.pool != nil {
		d.pool.Close()
	}
}

// open opens the database, and makes sure that it answers. An SQLite file must be there,
// unless it may be made.
func (o *databasePlace) open(ctx context.Context, env func(string) string, make bool) (*database, error) {
	where := o.database
	switch {
	case where != "" && o.file != "":
		return nil, errors.New("there are both -database and -database-file: give one of them")
	case o.file != "":
		var err error
		if where, err = textFile("database-file", o.file); err != nil {
			return nil, err
		}
	}
	where = cmp.Or(where, env("SUREHOOK_DATABASE"))
	switch {
	case where == "":
		return nil, errors.New("which database? Give -database FILE, -database postgres://…, -database-file or SUREHOOK_DATABASE")
	case strings.HasPrefix(where, "postgres://"), strings.HasPrefix(where, "postgresql://"), keywords.MatchString(where):
		return openPostgres(ctx, where, o.schema)
	case strings.Contains(where, "://"):
		return nil, errors.New("the database must be an SQLite file or a URL that begins with postgres://")
	case o.schema != "":
		return nil, errSchema
	}
	return openSQLite(ctx, where, make)
}

var errSchema = errors.New("-schema is for PostgreSQL: an SQLite file has none")

// keywords is how a connection string begins that is no URL (PostgreSQL, section 34.1.1.1). It
// may have a password, which no error is to show as the name of a file. So any word will do:
// the server and pgx have hundreds of keywords, and other drivers have theirs.
var keywords = regexp.MustCompile(`(?i)^\s*[a-z_][\w. ]*=`)

// noFile is the error that an SQLite file is not there.
type noFile string

func (f noFile) Error() string {
	return fmt.Sprintf("there is no file %s: give the one that the service works with", string(f))
}

func openSQLite(ctx context.Context, path string, make bool) (*database, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && make:
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600) // the driver would let others read it
		if err != nil {
			return nil, err
		}
		_ = f.Close()
	case errors.Is(err, os.ErrNotExist):
		return nil, noFile(path)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file: give the SQLite file that the service works with", path)
	}
	name := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path) // sqlite.org/uri.html, section 3.1
	// The journal mode is the file's: it stays as the service has chosen it.
	settings := "?mode=rw&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate"
	if make {
		settings += "&_pragma=journal_mode(wal)"
	}
	db, err := sql.Open("sqlite", "file:"+name+settings)
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, "SELECT count(*) FROM sqlite_master"); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("%s cannot be read as an SQLite database: %w", path, err)
	}
	s, err := sqlite.New(db, nil)
	return &database{path: path, sql: db, store: s}, err
}

func openPostgres(ctx context.Context, url, schema string) (*database, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil && keywords.MatchString(url) {
		return nil, errors.New("the database is not one that PostgreSQL understands: it must be like host=… dbname=…, and the files that it names must be there (an SQLite file of such a name is ./NAME)")
	}
	if err != nil {
		return nil, errors.New("the database's URL is not one that PostgreSQL understands: it must be like postgres://user@host:5432/name, and the files that it names must be there")
	}
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, 10*time.Second)
	if !strings.Contains(url, "default_query_exec_mode") {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // suits every pooler
	}
	config.MaxConns = 4
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, away(err)
	}
	s, err := postgres.NewSQL(pool, &postgres.Config{Schema: schema, Pooler: true})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &database{schema: schema, sql: stdlib.OpenDBFromPool(pool), pool: pool, store: s}, nil
}

// away words a connection's error without its URL.
func away(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return fmt.Errorf("PostgreSQL refuses the connection: %s (%s)", refused.Message, refused.Code)
	}
	return fmt.Errorf("PostgreSQL does not answer: %w", err)
}
