package crash

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptrace"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/replay"
)

const (
	timeout  = 400 * time.Millisecond
	lease    = 3 * timeout
	jobLease = 500 * time.Millisecond
	jobPoll  = 20 * time.Millisecond
	retry    = 50 * time.Millisecond

	largeBody = 900 << 10 // large enough that the writer waits for the reader
)

// order has a child's instructions, in the environment variable of that name, as JSON.
type order struct {
	Place    place
	Name     string
	Point    string
	Hit      int64
	Endpoint string // the witness's
	Defect   Defect
	Outlives bool // the database is killed: go on while it is away
}

const orderVariable = "SUREHOOK_CRASH_ORDER"

// Child runs one of the processes that are killed, and does not return, if this process was
// started as one. Otherwise it returns at once. A program that calls [Run] or [Database]
// calls it first, in TestMain or main.
func Child() {
	text := os.Getenv(orderVariable)
	if text == "" {
		return
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		go func() { // this process ends with its parent
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(3)
		}()
		if received(o.Point) || o.Point == receiving {
			err = o.receive(context.Background())
		} else {
			err = o.send(context.Background())
		}
	}
	fmt.Fprintln(os.Stderr, "crash:", err)
	os.Exit(2)
}

// tell writes a line for the parent, in one piece, before it returns.
func tell(words ...string) {
	_, _ = os.Stdout.WriteString(strings.Join(words, " ") + "\n")
}

// send publishes, dispatches and runs jobs until it is killed.
func (o *order) send(ctx context.Context) error {
	t := &trap{point: o.Point, hit: o.Hit}
	p, err := o.Place.open(ctx, t)
	if err != nil {
		return err
	}
	d, err := p.dispatcher(o.Point, o.Name, t.hooks())
	if err != nil {
		return err
	}
	ended := make(chan error, 4)
	go func() { ended <- o.publish(ctx, p, t) }()
	if o.Defect != Unsynced {
		go func() { ended <- d.Run(ctx) }()
		go func() { ended <- p.jobs.Run(ctx) }()
		go func() { ended <- o.operate(ctx, p) }()
	}
	return <-ended
}

// dispatcher returns the process's dispatcher. If the process must be killed as it gives up
// or disables, the policy does so soon.
func (o *opened) dispatcher(point, name string, hooks dispatch.Hooks) (*dispatch.Dispatcher, error) {
	schedule, err := backoff.Fixed(retry)
	if err != nil {
		return nil, err
	}
	policy := dispatch.Policy{Backoff: backoff.Policy{Schedule: schedule, Horizon: 24 * time.Hour}, DisableAfter: -1}
	switch {
	case strings.HasPrefix(point, "dead-letter "):
		policy.Backoff.Horizon = 3 * retry
	case strings.HasPrefix(point, "disable "):
		policy.DisableAfter = retry
	}
	return dispatch.New(o.store, o.keys, &dispatch.Config{
		Policy: policy, Timeout: timeout, Lease: lease, Network: network, UserAgent: name, Hooks: hooks, Logger: quiet,
	})
}

// hooks spring the trap on the wire. The context carries net/http's trace of the
// connection.
func (t *trap) hooks() dispatch.Hooks {
	return dispatch.Hooks{
		AttemptStart: func(ctx context.Context, _ *dispatch.Claimed) context.Context {
			return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
				ConnectStart:         func(string, string) { t.at(dialling) },
				WroteRequest:         func(httptrace.WroteRequestInfo) { t.at(bodySent) },
				GotFirstResponseByte: func() { t.at(headersReceived) },
			})
		},
		AttemptEnd: func(context.Context, *dispatch.Claimed, *dispatch.Result) { t.at(answered) },
		Recorded: func(_ context.Context, r *dispatch.Recorded) {
			if r.Lost {
				tell(toldLate, r.Event.ID, strconv.Itoa(r.Result.Number))
			}
		},
	}
}

// Types of events, each with a subscription of its own.
const (
	plain    = "thing.made"
	failing  = "thing.failing"  // the endpoint of this subscription never succeeds
	replayed = "thing.replayed" // whose delivered events are sent again
)

var errUndo = errors.New("undo")

// publish commits things with their events, rolls others back, and submits jobs. It tells
// the parent which of them were acknowledged. If the database does not answer, it tries
// again, under the same idempotency key.
func (o *order) publish(ctx context.Context, p *opened, t *trap) error {
	for n := 0; ; n++ {
		for err := o.publishOne(ctx, p, t, n); err != nil; err = o.publishOne(ctx, p, t, n) {
			if !o.Outlives {
				return fmt.Errorf("publishing: %w", err)
			}
			time.Sleep(20 * time.Millisecond) // the database is away
		}
		time.Sleep(10 * time.Millisecond) // so that events do not pile up
	}
}

func (o *order) publishOne(ctx context.Context, p *opened, t *trap, n int) error {
	e := sender.Event{Type: [...]string{plain, failing, replayed, plain}[n%4]}
	e.Object = sender.Object{Type: "thing", ID: fmt.Sprintf("%s-%d", o.Name, n)}
	e.IdempotencyKey = e.Object.ID
	if o.Point == midBody && n < 4 {
		e.Data = json.RawMessage(`"` + strings.Repeat("x", largeBody) + `"`)
	}
	undo := n%5 == 4
	if undo {
		e.Object.ID = undone + e.Object.ID
	}
	var ref sender.Ref
	inTx := p.pub.InTx
	if o.Defect == Unsynced { // hints to other processes are committed as usual
		inTx = receiver.SQL(p.db, nil)
	}
	err := inTx(ctx, func(tx *sql.Tx) (err error) {
		if ref, err = p.pub.PublishTx(ctx, tx, e); err != nil || ref.Duplicate {
			return err
		}
		switch o.Defect {
		case Early:
			tell(toldEvent, ref.ID, e.Object.ID)
		case Unsynced:
			if _, err := tx.ExecContext(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO things VALUES ('%s')", e.Object.ID)); err != nil {
			return err
		}
		if undo {
			t.at(rollback)
			return errUndo
		}
		return nil
	})
	switch {
	case undo && !errors.Is(err, errUndo):
		return fmt.Errorf("a transaction that was to be rolled back: %w", err)
	case undo:
	case err != nil:
		return err
	default:
		tell(toldEvent, ref.ID, e.Object.ID)
	}
	if n%3 != 2 || o.Defect == Unsynced {
		return nil
	}
	job, err := p.jobs.Submit(ctx, jobs.Submission{Kind: "two.steps", Owner: owner, CallbackURL: o.Endpoint + "/job", IdempotencyKey: e.IdempotencyKey})
	if err == nil {
		tell(toldJob, job.ID)
	}
	return err
}

func (o *order) operate(ctx context.Context, p *opened) error {
	for {
		time.Sleep(time.Duration(20+rand.IntN(20)) * time.Millisecond) // as an operator looks now and then
		var err error
		if strings.HasPrefix(o.Point, "replay ") {
			_, err = p.replays.Create(ctx, replay.Request{Filter: replay.Filter{
				Status: sender.StatusDelivered, EventType: replayed, Since: time.Now().Add(-time.Second),
			}})
		}
		if err != nil && !o.Outlives {
			return fmt.Errorf("replaying: %w", err)
		}
	}
}

func (o *opened) resumeDisabled(ctx context.Context) error {
	list, _, err := o.history.Subscriptions(ctx, sender.SubscriptionQuery{Status: sender.SubscriptionDisabled})
	if err != nil {
		return err
	}
	for _, s := range list {
		if err := o.registry.Resume(ctx, s.ID, sender.Resume{}); err != nil {
			return err
		}
	}
	return nil
}
