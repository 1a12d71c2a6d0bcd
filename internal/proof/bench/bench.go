package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/surehook/surehook/internal/proof/bench/child"
)

// bench has the parts that the scenarios of a run share.
type bench struct {
	options
	self   string // this program
	folder string // for everything that is written, removed at the end
	named  atomic.Int64
	server *server // PostgreSQL; nil until it is needed
	river  string  // the program; "" until it is needed

	riverVersion string
}

func newBench(o options) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "surehook-bench-")
	return &bench{options: o, self: self, folder: folder}, err
}

func (b *bench) close() error {
	var err error
	if b.server != nil {
		err = b.server.stop()
	}
	return errors.Join(err, os.RemoveAll(b.folder))
}

// of returns a scenario's amount of something.
func (b *bench) of(all, quick int) int {
	if b.quick {
		return quick
	}
	return all
}

// name makes a new name.
func (b *bench) name(kind string) string { return fmt.Sprintf("%s_%d", kind, b.named.Add(1)) }

// path makes a new file's path.
func (b *bench) path(kind string) string { return filepath.Join(b.folder, b.name(kind)) }

// start starts this program as a child in a role.
func (b *bench) start(ctx context.Context, role string, params, ready any) (*child.Process, error) {
	return child.Start(ctx, role, b.self, []string{"-role", role}, params, ready)
}
