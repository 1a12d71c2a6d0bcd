package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook/internal/pgtest"
)

// server is the PostgreSQL server of a run, with the defaults for durability.
type server struct {
	*pgtest.Server
	admin      *pgx.Conn
	postmaster int // its process
}

// postgres starts the server if it is not there yet.
func (b *bench) postgres(ctx context.Context) (*server, error) {
	if b.server != nil {
		return b.server, nil
	}
	s, err := pgtest.Start(pgtest.Options{Durable: true, SharedBuffers: "2GB", TCP: true})
	if err != nil {
		return nil, err
	}
	b.server = &server{Server: s}
	if b.server.admin, err = pgx.Connect(ctx, b.server.dsn("postgres")); err != nil {
		return nil, err
	}
	// All backends are the postmaster's children.
	stat, err := readStat(int(b.server.admin.PgConn().PID()))
	if err != nil {
		return nil, err
	}
	b.server.postmaster = stat.parent
	return b.server, b.server.fillLog(ctx, b.of(walFiles, 1))
}

// walFiles is a little more than what a server with the default max_wal_size writes from one
// checkpoint to the next.
const walFiles = 40

// fillLog has the server write as many files of its write-ahead log as it keeps, to use them
// again from then on, as a server does that has run for a while. A new file holds up all
// commits while it is filled with zeros, for 50 ms here, and falls to whoever writes most.
func (s *server) fillLog(ctx context.Context, files int) error {
	for range files {
		if _, err := s.admin.Exec(ctx, "SELECT pg_logical_emit_message(false, 'bench', ''), pg_switch_wal()"); err != nil {
			return err
		}
	}
	_, err := s.admin.Exec(ctx, "CHECKPOINT")
	return err
}

// dsn is a database's connection string, by TCP: most applications have a network in
// between.
func (s *server) dsn(database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", s.Address(), database)
}

// fresh makes an empty database.
func (s *server) fresh(ctx context.Context, name string) (dsn string, drop func() error, err error) {
	if _, err := s.admin.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	return s.dsn(name), func() error {
		_, err := s.admin.Exec(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)")
		return err
	}, nil
}

// cpu is the CPU time of the postmaster and all its children, also of those that have
// ended, in µs. The kernel counts it in ticks of 10 ms.
func (s *server) cpu() (us float64, err error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	ticks := 0
	for _, dir := range all {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		stat, err := readStat(pid)
		switch {
		case errors.Is(err, os.ErrNotExist): // it has just ended
		case err != nil:
			return 0, err
		case pid == s.postmaster:
			ticks += stat.own + stat.children
		case stat.parent == s.postmaster:
			ticks += stat.own
		}
	}
	return float64(ticks) * tick, nil
}

// tick is the unit in which the kernel counts CPU time, in µs.
const tick = 10_000

func (s *server) stop() error {
	if s.admin != nil {
		_ = s.admin.Close(context.Background())
	}
	return s.Stop()
}

// stat has the fields of /proc/PID/stat.
type stat struct {
	parent        int
	own, children int // ticks; of the children that have ended
}

func readStat(pid int) (s stat, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, err
	}
	// The name stands in brackets, and may contain brackets.
	_, rest, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')'):], []byte(" "))
	f := strings.Fields(string(rest)) // from the third on: see proc(5)
	if len(f) < 15 {
		return s, fmt.Errorf("/proc/%d/stat is not understood: %q", pid, b)
	}
	n := func(i int) int {
		v, _ := strconv.Atoi(f[i-3])
		return v
	}
	return stat{parent: n(4), own: n(14) + n(15), children: n(16) + n(17)}, nil
}
