package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/jobs"
	jobspostgres "github.com/surehook/surehook/sender/jobs/postgres"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/replay"
)

// textWatch sees the text arguments of statements, and remembers those that PostgreSQL
// cannot store.
type textWatch struct {
	mu   sync.Mutex
	seen []string
}

func (w *textWatch) look(args []any) {
	for _, arg := range args {
		if s, ok := arg.(string); ok && (!utf8.ValidString(s) || strings.ContainsRune(s, 0)) {
			w.mu.Lock()
			w.seen = append(w.seen, s)
			w.mu.Unlock()
		}
	}
}

func (w *textWatch) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	w.look(data.Args)
	return ctx
}

func (w *textWatch) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (w *textWatch) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, q := range data.Batch.QueuedQueries {
		w.look(q.Arguments)
	}
	return ctx
}

func (w *textWatch) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (w *textWatch) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// texts has all calls that take texts from a caller, on one database.
type texts struct {
	publisher *sender.Publisher[pgx.Tx]
	registry  *sender.Registry[pgx.Tx]
	history   *history.History
	replays   *replay.Replays
	feed      *feed.Reader
	jobs      *jobs.Jobs[pgx.Tx]
}

func newTexts(t *testing.T, p *place, pool *pgxpool.Pool) *texts {
	s, err := postgres.New(pool, &postgres.Config{Schema: p.schema})
	require.NoError(t, err)
	register(t, s, 1, 1, sender.Settings{})
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte("1"), 32)})
	require.NoError(t, err)
	var x texts
	x.publisher, err = sender.NewPublisher(s, nil)
	require.NoError(t, err)
	x.registry, err = sender.NewRegistry(s, keys, nil)
	require.NoError(t, err)
	x.history, err = history.New(s, nil)
	require.NoError(t, err)
	x.replays, err = replay.New(s, nil)
	require.NoError(t, err)
	x.feed, err = feed.NewReader(s, nil)
	require.NoError(t, err)
	store, err := jobspostgres.New(pool, &jobspostgres.Config{Schema: p.schema})
	require.NoError(t, err)
	require.NoError(t, store.Migrate(t.Context()))
	announcer, err := jobs.NewCallbacks(x.registry, x.publisher, nil)
	require.NoError(t, err)
	work := jobs.Kind[pgx.Tx]{Name: "work", Run: func(context.Context, *jobs.Run[pgx.Tx]) (json.RawMessage, error) { return nil, nil }}
	x.jobs, err = jobs.New(store, []jobs.Kind[pgx.Tx]{work}, &jobs.Config[pgx.Tx]{Announcer: announcer})
	require.NoError(t, err)
	return &x
}

// taken are the calls that run in the caller's transaction.
func (x *texts) taken(ctx context.Context, tx pgx.Tx, bad string) map[string]error {
	r := x.registry
	all := map[string]error{}
	event := func(name string, change func(e *sender.Event)) {
		e := sender.Event{Type: "a.b", Object: sender.Object{Type: "a", ID: "1"}, IdempotencyKey: "k"}
		change(&e)
		_, all["publish: "+name] = x.publisher.PublishTx(ctx, tx, e)
	}
	event("type", func(e *sender.Event) { e.Type = bad })
	event("object type", func(e *sender.Event) { e.Object.Type = bad })
	event("object id", func(e *sender.Event) { e.Object.ID = bad })
	event("data", func(e *sender.Event) { e.Data = json.RawMessage(`"` + bad + `"`) })
	event("subscriber", func(e *sender.Event) { e.Subscriber = bad })
	event("subscription", func(e *sender.Event) { e.Subscriber, e.Subscription = subscriberID(0), bad })
	event("url", func(e *sender.Event) {
		e.Subscriber, e.Subscription, e.URL = subscriberID(0), subscriptionID(0, 0), "https://example.com/?"+bad
	})
	event("idempotency key", func(e *sender.Event) { e.IdempotencyKey = bad })
	event("key scope", func(e *sender.Event) { e.KeyScope = bad })
	subscribe := func(name string, change func(n *sender.NewSubscription)) {
		n := sender.NewSubscription{Subscriber: subscriberID(0), URL: "https://example.com/"}
		change(&n)
		_, all["subscribe: "+name] = r.SubscribeTx(ctx, tx, n)
	}
	subscribe("subscriber", func(n *sender.NewSubscription) { n.Subscriber = bad })
	subscribe("url", func(n *sender.NewSubscription) { n.URL += bad })
	subscribe("query", func(n *sender.NewSubscription) { n.URL += "?" + bad })
	subscribe("type", func(n *sender.NewSubscription) { n.EventTypes = []string{bad} })
	subscribe("description", func(n *sender.NewSubscription) { n.Description = bad })
	subscribe("header", func(n *sender.NewSubscription) { n.Settings.Headers = map[string]string{"X-" + bad: "1"} })
	subscribe("header's value", func(n *sender.NewSubscription) { n.Settings.Headers = map[string]string{"X-A": bad} })
	subscribe("proxy", func(n *sender.NewSubscription) { n.Settings.Proxy = bad })
	_, all["update: id"] = r.UpdateTx(ctx, tx, bad, sender.SubscriptionChange{})
	_, all["update: description"] = r.UpdateTx(ctx, tx, subscriptionID(0, 0), sender.SubscriptionChange{Description: &bad})
	_, _, all["create: id"] = r.CreateSubscriberTx(ctx, tx, sender.NewSubscriber{ID: bad})
	_, all["callback: subscriber"] = r.CallbackTx(ctx, tx, bad, "https://example.com/")
	_, all["callback: url"] = r.CallbackTx(ctx, tx, subscriberID(0), "https://example.com/?"+bad)
	all["pause: id"] = r.PauseTx(ctx, tx, bad)
	all["disable: id"] = r.DisableTx(ctx, tx, bad, "x")
	all["disable: reason"] = r.DisableTx(ctx, tx, subscriptionID(0, 0), bad)
	all["resume: id"] = r.ResumeTx(ctx, tx, bad, sender.Resume{})
	all["close: id"] = r.CloseTx(ctx, tx, bad)
	all["unsubscribe: id"] = r.UnsubscribeTx(ctx, tx, bad)
	all["delete: id"] = r.DeleteSubscriberTx(ctx, tx, bad)
	_, all["test: id"] = r.SendTestTx(ctx, tx, bad)
	_, _, all["rotate: subscriber"] = r.RotateSecretTx(ctx, tx, bad, nil)
	all["activate: subscriber"] = r.ActivateSecretTx(ctx, tx, bad)
	all["retire: subscriber"] = r.RetireSecretTx(ctx, tx, bad)
	for name, s := range map[string]jobs.Submission{
		"kind": {Kind: bad}, "owner": {Kind: "work", Owner: bad}, "input": {Kind: "work", Input: json.RawMessage(`"` + bad + `"`)},
		"key": {Kind: "work", IdempotencyKey: bad}, "scope": {Kind: "work", IdempotencyKey: "k", KeyScope: bad},
		"callback": {Kind: "work", Owner: subscriberID(0), CallbackURL: "https://example.com/?" + bad},
	} {
		_, all["submit: "+name] = x.jobs.SubmitTx(ctx, tx, s)
	}
	_, all["job: id"] = x.jobs.GetTx(ctx, tx, jobs.Key{ID: bad})
	_, all["job: owner"] = x.jobs.GetTx(ctx, tx, jobs.Key{ID: "job_1", Owner: bad})
	_, all["cancel job: id"] = x.jobs.CancelTx(ctx, tx, jobs.Key{ID: bad})
	return all
}

// own are the calls that have transactions of their own.
func (x *texts) own(ctx context.Context, bad string) map[string]error {
	all := map[string]error{}
	h, r, now := x.history, x.registry, time.Now()
	_, all["subscriber: id"] = r.Subscriber(ctx, bad)
	_, all["keyring: id"] = r.Keyring(ctx, bad)
	_, all["secrets: subscriber"] = r.Secrets(ctx, bad)
	_, all["signing secret: id"] = r.SigningSecret(ctx, bad)
	_, all["subscription: id"] = r.Subscription(ctx, bad)
	_, all["subscriptions: subscriber"] = r.Subscriptions(ctx, bad, "", 1)
	_, all["subscriptions: after"] = r.Subscriptions(ctx, "", bad, 1)
	_, all["delivery: id"] = h.Delivery(ctx, bad)
	_, all["delivery: inside of an id"] = h.Delivery(ctx, "dlv_"+bad+"_1")
	_, all["event: id"] = h.Event(ctx, bad)
	_, all["why: id"] = h.Why(ctx, bad)
	all["redeliver: id"] = h.Redeliver(ctx, bad)
	_, all["acknowledge: id"] = h.Acknowledge(ctx, bad, "")
	_, all["acknowledge: subscriber"] = h.Acknowledge(ctx, "ntc_1", bad)
	for name, q := range map[string]history.DeliveryQuery{
		"status": {Status: sender.Status(bad)}, "subscription": {Subscription: bad}, "subscriber": {Subscriber: bad}, "event": {Event: bad}, "type": {EventType: bad},
		"object type": {Object: sender.Object{Type: bad}}, "object id": {Object: sender.Object{Type: "a", ID: bad}}, "class": {Class: sender.Class(bad)}, "cursor": {Cursor: bad},
	} {
		_, _, all["deliveries: "+name] = h.Deliveries(ctx, q)
	}
	for name, q := range map[string]history.EventQuery{
		"type": {Type: bad}, "object type": {Object: sender.Object{Type: bad}}, "object id": {Object: sender.Object{Type: "a", ID: bad}}, "subscriber": {Subscriber: bad}, "cursor": {Cursor: bad},
	} {
		_, _, all["events: "+name] = h.Events(ctx, q)
	}
	for name, q := range map[string]history.NoticeQuery{
		"subscriber": {Subscriber: bad}, "subscription": {Subscription: bad}, "kind": {Kind: sender.NoticeKind(bad)}, "cursor": {Cursor: bad},
	} {
		_, _, all["notices: "+name] = h.Notices(ctx, q)
	}
	for name, q := range map[string]sender.SubscriptionQuery{"subscriber": {Subscriber: bad}, "status": {Status: sender.SubscriptionStatus(bad)}, "cursor": {Cursor: bad}} {
		_, _, all["list subscriptions: "+name] = h.Subscriptions(ctx, q)
	}
	for name, r := range map[string]history.Redaction{"subscriber": {Subscriber: bad}, "object type": {Object: sender.Object{Type: bad, ID: "1"}}, "object id": {Object: sender.Object{Type: "a", ID: bad}}} {
		_, all["redact: "+name] = h.Redact(ctx, r)
	}
	for name, f := range map[string]replay.Filter{
		"status": {Status: sender.Status(bad)}, "subscription": {Subscription: bad}, "subscriber": {Subscriber: bad}, "type": {EventType: bad}, "class": {ErrorClass: sender.Class(bad)},
	} {
		_, all["preview: "+name] = x.replays.Preview(ctx, f)
		_, all["replay: "+name] = x.replays.Create(ctx, replay.Request{Filter: f})
	}
	_, all["replay: by"] = x.replays.Create(ctx, replay.Request{By: bad})
	_, all["replay: reason"] = x.replays.Create(ctx, replay.Request{Reason: bad})
	_, all["replay: id"] = x.replays.Get(ctx, bad)
	_, all["pause replay: id"] = x.replays.Pause(ctx, bad)
	_, all["replays: after"] = x.replays.List(ctx, replay.Query{After: bad})
	_, all["replays: subscriber"] = x.replays.List(ctx, replay.Query{Subscriber: bad})
	_, all["feed: viewer"] = x.feed.Page(ctx, feed.Query{Viewer: bad})
	_, all["feed: cursor"] = x.feed.Page(ctx, feed.Query{Viewer: sender.Operator, After: bad})
	_, all["feed event: viewer"] = x.feed.Event(ctx, bad, "evt_1")
	_, all["feed event: id"] = x.feed.Event(ctx, sender.Operator, bad)
	for name, q := range map[string]jobs.Query{"owner": {Owner: bad}, "kind": {Kind: bad}, "status": {Status: jobs.Status(bad)}, "cursor": {Cursor: bad}} {
		_, _, all["jobs: "+name] = x.jobs.List(ctx, q)
	}
	_, all["rollups"] = h.Rollups(ctx, now, now)
	return all
}

// A text that PostgreSQL cannot store reaches no statement, wherever a caller gives it.
// It is refused, or not found, and the caller's transaction goes on.
func TestNoStatementGetsATextThatCannotBeKept(t *testing.T) {
	p := newPlace(t)
	cfg, err := pgxpool.ParseConfig(pgtest.DSN(t))
	require.NoError(t, err)
	var watch textWatch
	cfg.ConnConfig.Tracer = &watch
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	x := newTexts(t, p, pool)
	refused := func(t *testing.T, all map[string]error) {
		for name, err := range all {
			known := false
			for _, of := range []error{sender.ErrInvalid, sender.ErrInvalidEvent, sender.ErrNotFound, jobs.ErrInvalid, jobs.ErrNotFound, jobs.ErrKind} {
				known = known || errors.Is(err, of)
			}
			require.True(t, known, "%s: %v", name, err)
		}
		watch.mu.Lock()
		defer watch.mu.Unlock()
		require.Empty(t, watch.seen)
	}
	for _, bad := range []string{"a\x00b", "a\xff"} {
		t.Run(fmt.Sprintf("%q", bad), func(t *testing.T) {
			tx, err := pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(context.Background()) }()
			refused(t, x.taken(t.Context(), tx, bad))
			_, err = tx.Exec(t.Context(), "SELECT 1")
			require.NoError(t, err)
			refused(t, x.own(t.Context(), bad))
		})
	}
}
