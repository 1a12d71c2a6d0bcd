package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// The users of a server's processes, as the connections' application_name says.
const (
	forProducer   = "producer"
	forDispatcher = "dispatcher"
	forServer     = "server" // checkpoints, the log's writer, autovacuum
)

// processes are the processes of a server, with the CPU time of each. The scheduler counts
// CPU time to the nanosecond, while ticks are 10 ms.
type processes struct {
	of    map[int]process // by id
	ended float64         // µs of ended processes, counted in ticks
}

type process struct {
	worksFor string
	used     float64 // µs
}

// processes reads the CPU time of the processes that work in a database, and of the
// server's own.
func (s *server) processes(ctx context.Context, database string) (*processes, error) {
	all := &processes{of: map[int]process{}}
	rows, err := s.admin.Query(ctx, `SELECT pid, CASE
			WHEN datname IS NULL OR backend_type = 'autovacuum worker' THEN $2
			WHEN application_name = $3 THEN $3 ELSE $4 END
		FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND (datname IS NULL OR datname = $1)`,
		database, forServer, forProducer, forDispatcher)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		var p process
		if err := rows.Scan(&pid, &p.worksFor); err != nil {
			return nil, err
		}
		switch p.used, err = scheduled(pid); {
		case errors.Is(err, os.ErrNotExist): // it has just ended
		case err != nil:
			return nil, err
		default:
			all.of[pid] = p
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	postmaster, err := readStat(s.postmaster)
	all.ended = float64(postmaster.children) * tick
	return all, err
}

// since is the CPU time since an earlier reading, by user. The time of a process that
// has ended meanwhile counts as the server's: it is autovacuum's.
func (p *processes) since(earlier *processes) map[string]float64 {
	used := map[string]float64{}
	for pid, now := range p.of {
		used[now.worksFor] += now.used - earlier.of[pid].used
	}
	ended := p.ended - earlier.ended
	for pid, then := range earlier.of {
		if _, lives := p.of[pid]; !lives {
			ended -= then.used
		}
	}
	used[forServer] += max(0, ended)
	return used
}

// scheduled is the CPU time of a process with one thread, in µs.
func scheduled(pid int) (us float64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, err
	}
	first, _, _ := bytes.Cut(b, []byte(" "))
	ns, err := strconv.ParseInt(string(first), 10, 64)
	return float64(ns) / 1e3, err
}
