package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook/internal/cputime"
)

const (
	pageMS    = "ms"
	pageMost  = "most ms"
	pageCPU   = "CPU ms"
	pageRows  = "rows"
	pageBlock = "buffers"
	worstPage = "the slowest of all pages"
)

// pages measures the console's and the portal's pages beside ten million deliveries.
func pages() scenario {
	return scenario{
		name: "pages-postgres",
		question: "The time of each page of the console and of the portal, and of creating a replay, with ten million deliveries on PostgreSQL (with -quick a hundred thousand), " +
			"the CPU time of this process and of the server's, and the rows and buffers of tables and indexes that the server reads for it. The first time of each page is among those of which the longest is shown.",
		columns: []string{pageMS, pageMost, pageCPU, pageRows, pageBlock},
		ratios:  []ratio{{figure: pageMS, of: worstPage, least: 200, smallerBetter: true}},
		open: func(ctx context.Context, b *bench) ([]measure, func() error, error) {
			s, err := openServed(ctx, b, b.of(10_000_000, 100_000))
			if err != nil {
				return nil, nil, err
			}
			return []measure{s.measured}, s.close, nil
		},
	}
}

// openServed fills a database and serves its pages.
func openServed(ctx context.Context, b *bench, n int) (*served, error) {
	p, err := freshPostgres(ctx, b)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	err = fillPages(ctx, p, n, b.of(35, 3), func(what string) {
		what, _, _ = strings.Cut(what, " (")
		fmt.Fprintf(os.Stderr, "pages-postgres: %4.0f s: %s\n", time.Since(began).Seconds(), what)
	})
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	s, err := servePages(ctx, p.DSN, n)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	closePages := s.close
	s.close = func() error { return errors.Join(closePages(), p.close()) }
	return s, nil
}

// pageCost is what a page takes.
type pageCost struct {
	took         time.Duration
	cpu          float64 // ms
	rows, blocks int64
}

// get gets a page, or sends a form.
func (s *served) get(ctx context.Context, p page) (c pageCost, err error) {
	rows, blocks, err := s.read(ctx)
	if err != nil {
		return c, err
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, p.path, nil)
	if p.form != "" {
		r = httptest.NewRequestWithContext(ctx, http.MethodPost, p.path, strings.NewReader(p.form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	handler := s.console
	if p.portal {
		r = s.asVisitor(r)
		handler = s.portal
	}
	w := httptest.NewRecorder()
	before, err := s.cpu()
	if err != nil {
		return c, err
	}
	began := time.Now()
	handler.ServeHTTP(w, r)
	c.took = time.Since(began)
	if c.cpu, err = s.cpu(); err != nil {
		return c, err
	}
	c.cpu -= before
	refused := p.form != "" && w.Code == http.StatusConflict // some of it is too old to be sent again
	if w.Code != http.StatusOK && w.Code != http.StatusFound && w.Code != http.StatusSeeOther && !refused {
		_, text, _ := strings.Cut(w.Body.String(), `role="alert"`)
		return c, fmt.Errorf("%s is answered %d: %.300s", s.name(p), w.Code, text)
	}
	c.rows, c.blocks, err = s.read(ctx)
	c.rows, c.blocks = c.rows-rows, c.blocks-blocks
	return c, err
}

// measured gets each page five times.
func (s *served) measured(ctx context.Context) (all []sample, err error) {
	worst := map[string]float64{}
	for _, p := range s.pages {
		var took, cpu []float64
		var last pageCost
		for range 5 {
			if last, err = s.get(ctx, p); err != nil {
				return nil, err
			}
			took, cpu = append(took, last.took.Seconds()*1e3), append(cpu, last.cpu)
		}
		figures := map[string]float64{pageMS: median(took), pageMost: slices.Max(took), pageCPU: median(cpu), pageRows: float64(last.rows), pageBlock: float64(last.blocks)}
		all = append(all, sample{s.name(p), figures})
		for name, v := range figures {
			if p.form != "" {
				break
			}
			worst[name] = max(worst[name], v)
		}
	}
	return append(all, sample{worstPage, worst}), nil
}

// cpu is the CPU time of this process and of the server's one for its connection, in ms. A
// connection that was given up has none.
func (s *served) cpu() (ms float64, err error) {
	us, err := scheduled(s.backend)
	if errors.Is(err, os.ErrNotExist) {
		us, err = 0, nil
	}
	return us/1e3 + cputime.Used().Seconds()*1e3, err
}

// read has the rows that the server has read of tables and indexes so far, and the buffers.
func (s *served) read(ctx context.Context) (rows, blocks int64, err error) {
	// A session tells what it has read when it is asked to, after the statement.
	if _, err := s.pool.Exec(ctx, `SELECT pg_stat_force_next_flush()`); err != nil {
		return 0, 0, err
	}
	if _, err := s.pool.Exec(ctx, `SELECT 1`, pgx.QueryExecModeSimpleProtocol); err != nil {
		return 0, 0, err
	}
	err = s.pool.QueryRow(ctx, `SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables)::bigint + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)::bigint,
		(SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0) + coalesce(toast_blks_read + toast_blks_hit, 0)) FROM pg_statio_user_tables)::bigint, pg_backend_pid()`).Scan(&rows, &blocks, &s.backend)
	return rows, blocks, err
}
