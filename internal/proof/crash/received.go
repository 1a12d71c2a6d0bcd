package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/signing"
)

const posters = 4

// receiveAll posts events to receivers, which are killed one after the other.
func (r *run) receiveAll(ctx context.Context, orders []order) error {
	at := &address{known: make(chan struct{})}
	stop, err := r.post(ctx, at)
	if err != nil {
		return err
	}
	for _, o := range orders {
		p, err := o.start(ctx, at.heard)
		if err == nil {
			err = p.killed()
			at.forget()
		}
		if err != nil {
			return errors.Join(fmt.Errorf("the receiver, to be killed at %q, hit %d: %w", o.Point, o.Hit, err), stop())
		}
		r.killed(o.Point)
	}
	last := order{Place: r.place, Point: receiving}
	p, err := last.start(ctx, at.heard)
	if err != nil {
		return errors.Join(err, stop())
	}
	err = stop()
	p.kill()
	return errors.Join(err, p.killed())
}

// post posts events to the receiver at an address, each until the answer is 200. When
// it is stopped it finishes the events under way. If one fails the others end.
func (r *run) post(ctx context.Context, at *address) (stop func() error, err error) {
	ring, err := ringOf()
	if err != nil {
		return nil, err
	}
	posting, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	for i := range posters {
		group.Go(func() error {
			for v := 1; posting.Err() == nil; v++ {
				if err := r.insist(ctx, ring, at, fmt.Sprintf("object-%d", i), v); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return func() error {
		cancel()
		return group.Wait()
	}, nil
}

// address is the receiver's address while one runs.
type address struct {
	mu    sync.Mutex
	url   string
	known chan struct{} // closed while it is
}

func (a *address) heard(words []string) {
	if len(words) == 2 && words[0] == toldURL {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.url = words[1]
		close(a.known)
	}
}

func (a *address) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = make(chan struct{})
}

func (a *address) get(ctx context.Context) (string, error) {
	a.mu.Lock()
	known := a.known
	a.mu.Unlock()
	select {
	case <-known:
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.url, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// insist posts an event until the answer is 200, and then once more. At every 200 the
// event must have exactly one effect and one marker.
func (r *run) insist(ctx context.Context, ring *signing.Keyring, at *address, object string, version int) error {
	now := time.Now()
	id := newid.New("evt_", now)
	body := fmt.Appendf(nil, `{"id":%q,"type":"thing.made","occurred_at":%q,"object":{"type":"thing","id":%q},"version":%d}`,
		id, now.UTC().Format(time.RFC3339), object, version)
	for well := 0; well < 2; {
		url, err := at.get(ctx)
		if err != nil {
			return err
		}
		status, err := postSigned(ctx, ring, url, id, body)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil || status == http.StatusServiceUnavailable:
			time.Sleep(5 * time.Millisecond) // as a sender waits before it tries again
		case status != http.StatusOK:
			return fmt.Errorf("the receiver answered %d", status)
		default:
			well++
			if err := r.checkApplied(ctx, id); err != nil {
				return err
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Received++
	return nil
}

// checkApplied checks I10 and I11 for an event that was answered with 200.
func (r *run) checkApplied(ctx context.Context, id string) error {
	var n int
	for err := errors.New("not asked"); err != nil; {
		err = r.own.db.QueryRowContext(ctx, fmt.Sprintf(`SELECT (SELECT count(*) FROM effects WHERE event = '%[1]s') * 100
			+ (SELECT count(*) FROM surehook_dedup_markers WHERE id = '%[1]s')`, id)).Scan(&n)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			time.Sleep(20 * time.Millisecond) // the database was killed
		}
	}
	if n != 101 {
		r.witness.broke("I10, I11: %s was answered with 200, and has %d effects and %d markers", id, n/100, n%100)
	}
	return nil
}

func postSigned(ctx context.Context, ring *signing.Keyring, url, id string, body []byte) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if err := signing.Sign(req.Header, signing.DefaultSchemes(), id, time.Now(), body, ring); err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}
