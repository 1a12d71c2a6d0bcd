package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/internal/proof/defect"
)

// defects tries all defects, some of them side by side.
func defects(o options) func(ctx context.Context, b *bench, during time.Duration, r *result) error {
	return func(ctx context.Context, b *bench, _ time.Duration, r *result) error {
		root, err := moduleRoot(ctx)
		if err != nil {
			return err
		}
		list := defect.All()
		var mu sync.Mutex
		tried, caught := 0, 0
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(max(o.parallel, 1))
		for _, d := range list {
			group.Go(func() error {
				out, err := d.Try(ctx, root)
				if ctx.Err() != nil {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				tried++
				switch {
				case err != nil:
					r.fail(fmt.Sprintf("%s (%s) could not be tried: %v", d.Name, d.File, err), "")
				case !out.Caught:
					again := "go test " + strings.Join(d.Tests, " ")
					if d.Module != "" {
						again = "cd " + d.Module + " && GOWORK=off " + again
					}
					r.fail(fmt.Sprintf("%s (%s) was not caught: %s", d.Name, d.File, out.Problem), again)
				default:
					caught++
				}
				r.Details = append(r.Details, out)
				b.progress(fmt.Sprintf("defects: %d of %d tried, %d caught", tried, len(list), caught))
				return nil
			})
		}
		err = group.Wait()
		r.figure("defects", len(list))
		r.figure("tried", tried)
		r.figure("caught", caught)
		r.enough("defects tried", tried, len(list))
		return err
	}
}

// moduleRoot returns the folder with go.mod.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", errors.New("this must run inside the module")
	}
	return filepath.Dir(mod), nil
}
