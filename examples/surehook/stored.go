package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/surehook/surehook/receiver/catchup"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// stored is the backend of a service that embeds the library: its database.
type stored struct {
	db      *database
	history *history.History
	replays *replay.Replays
}

func newStored(db *database) (backend, error) {
	h, err := history.New(db.store, nil)
	if err != nil {
		return nil, err
	}
	r, err := replay.New(db.store, nil)
	return &stored{db, h, r}, err
}

func (s *stored) close() { s.db.close() }

// plain is an error of the library without the names of packages, and without the words before
// the library's own, which say where in it the error was met.
func plain(err error) string {
	text := err.Error()
	if _, own, met := strings.Cut(text, "sender: "); met {
		text = own
	}
	return strings.NewReplacer("sender: ", "", "postgres: ", "", "sqlite: ", "", "history: ", "", "replay: ", "", "feed: ", "").Replace(text)
}

// ofDelivery words that there is none.
func ofDelivery(id string, err error) error {
	if errors.Is(err, sender.ErrNotFound) {
		return no("there is no such delivery: %s", id)
	}
	return answered(err)
}

var errNoTables = no("the database has not the sender's tables: surehook migrate status shows what it has (with -schema, if they are in a schema)")

// answered tells what the library refuses from what could not be tried.
func answered(err error) error {
	if err != nil && (strings.Contains(err.Error(), "no such table") || strings.Contains(err.Error(), "42P01")) {
		return errNoTables
	}
	for _, refused := range []error{
		sender.ErrNotFound, sender.ErrInvalid, sender.ErrStatus, sender.ErrRetention, sender.ErrCancelled, sender.ErrRedacted,
		sender.ErrInvalidEvent, sender.ErrVersion, sender.ErrUnfit,
	} {
		if errors.Is(err, refused) {
			return no("%s", plain(err))
		}
	}
	return err
}

func (s *stored) deliveries(ctx context.Context, f filter, cursor string, limit int) (page, error) {
	found, next, err := s.history.Deliveries(ctx, history.DeliveryQuery{
		Status: sender.Status(f.status), Subscription: f.subscription, Subscriber: f.subscriber, Event: f.event, EventType: f.eventType,
		Object: sender.Object(f.object), Since: f.since.Time, Until: f.until.Time, Class: sender.Class(f.class), StatusCode: f.code, Cursor: cursor, Limit: limit,
	})
	if err != nil {
		return page{}, answered(err)
	}
	p := page{Data: []delivery{}, NextCursor: orNull(next)}
	for _, d := range found {
		p.Data = append(p.Data, viewDelivery(d))
	}
	return p, nil
}

func (s *stored) delivery(ctx context.Context, id string) (record, error) {
	d, err := s.history.Delivery(ctx, id)
	if err != nil {
		return record{}, ofDelivery(id, err)
	}
	why, err := s.history.Why(ctx, id)
	if err != nil {
		return record{}, answered(err)
	}
	r := record{delivery: viewDelivery(d), Payload: string(d.Body), Attempts: []attempt{}, Why: why.Sentence, WaitsFor: orNull(why.Behind), HoldsBack: why.HoldsBack}
	for _, a := range d.Attempts {
		r.Attempts = append(r.Attempts, attempt{
			Number: a.Number, StartedAt: a.StartedAt.UTC(), DurationMS: a.Duration.Milliseconds(), StatusCode: orNull(a.StatusCode),
			Error: orNull(a.Error), ErrorClass: string(a.Class), ResponseSnippet: orNull(strings.ToValidUTF8(string(a.Snippet), "\uFFFD")),
			RequestHeaders: viewHeaders(a.Headers.Request()), ResponseHeaders: viewHeaders(a.Headers.Answer()),
			NextAttemptAt: timeOrNull(a.NextAttemptAt),
		})
	}
	return r, nil
}

func viewHeaders(all []sender.Header) []header {
	list := make([]header, len(all))
	for i, h := range all {
		list[i] = header(h)
	}
	return list
}

func (s *stored) redeliver(ctx context.Context, id string, force bool) error {
	if force {
		return ofDelivery(id, s.history.RedeliverForced(ctx, id))
	}
	return ofDelivery(id, s.history.Redeliver(ctx, id))
}

func (s *stored) event(ctx context.Context, id string) (eventInfo, string, error) {
	e, err := s.history.Event(ctx, id)
	if errors.Is(err, sender.ErrNotFound) {
		return eventInfo{}, "", no("there is no such event: %s", id)
	}
	return viewEvent(e.EventInfo, e.Version), e.Subscriber, answered(err)
}

func (s *stored) eventsAbout(ctx context.Context, about object, limit int) (all []eventInfo, more bool, err error) {
	cursor := ""
	for {
		page, next, err := s.history.Events(ctx, history.EventQuery{Object: sender.Object(about), Cursor: cursor, Limit: limit - len(all)})
		if err != nil {
			return nil, false, answered(err)
		}
		for i := range page {
			all = append(all, viewEvent(page[i].EventInfo, page[i].Version))
		}
		if next == "" || len(all) == limit { // a page can be short before the end
			return all, next != "", nil
		}
		cursor = next
	}
}

func (s *stored) whyOf(ctx context.Context, event, subscription string) (string, error) {
	why, err := s.history.WhyOf(ctx, event, subscription)
	if why.Reason == history.WhyNotAddressed {
		return "", nil
	}
	return why.Sentence, answered(err)
}

func (s *stored) subscriptions(ctx context.Context, status, subscriber, cursor string) (subscriptionPage, error) {
	found, next, err := s.history.Subscriptions(ctx, sender.SubscriptionQuery{
		Status: sender.SubscriptionStatus(status), Subscriber: subscriber, Implicit: true, Cursor: cursor, Limit: 200,
	})
	if err != nil {
		return subscriptionPage{}, answered(err)
	}
	p := subscriptionPage{Data: []subscription{}, NextCursor: orNull(next)}
	for _, one := range found {
		p.Data = append(p.Data, viewSubscription(one))
	}
	return p, nil
}

func (s *stored) pause(ctx context.Context, id string) (subscription, error) {
	return s.change(ctx, id, sender.SubscriptionPaused, func(tx *sql.Tx) error {
		return s.db.store.HoldSubscriptionTx(ctx, tx, id, sender.SubscriptionPaused, "")
	})
}

func (s *stored) resume(ctx context.Context, id string, which resumption) (subscription, error) {
	take := sender.Resume{None: which.none, Since: which.since.Time}
	if !which.force {
		take.NotBefore = sender.Retention{}.WithDefaults().NotBefore(time.Now())
	}
	return s.change(ctx, id, sender.SubscriptionActive, func(tx *sql.Tx) error {
		return s.db.store.ResumeSubscriptionTx(ctx, tx, id, take)
	})
}

// change returns what a subscription is after a change to a status.
func (s *stored) change(ctx context.Context, id string, to sender.SubscriptionStatus, fn func(*sql.Tx) error) (subscription, error) {
	if err := s.db.store.InTx(ctx, fn); err != nil {
		return subscription{}, answered(err)
	}
	found, _, err := s.history.Subscriptions(ctx, sender.SubscriptionQuery{ID: id, Implicit: true})
	if err != nil || len(found) == 0 {
		return subscription{ID: id, Status: string(to)}, answered(err)
	}
	return viewSubscription(found[0]), nil
}

func viewSubscription(s sender.Subscription) subscription {
	return subscription{
		ID: s.ID, SubscriberID: s.Subscriber, URL: s.URL, EventTypes: s.EventTypes, Status: string(s.Status),
		FailingSince: timeOrNull(s.Health.FailingSince), DisabledAt: timeOrNull(s.DisabledAt), DisabledReason: orNull(s.DisabledReason),
		LastSuccessAt: timeOrNull(s.Health.LastSuccess), LastFailureAt: timeOrNull(s.Health.LastFailure),
		Backlog: s.Backlog, DeadLettered: s.DeadLettered,
	}
}

func (s *stored) notices(ctx context.Context, which notices, cursor string) (noticePage, error) {
	found, next, err := s.history.Notices(ctx, history.NoticeQuery{
		Kind: sender.NoticeKind(which.kind), Unread: !which.acknowledged, Cursor: cursor, Limit: 200,
	})
	p := noticePage{Data: []notice{}, NextCursor: orNull(next)}
	for _, n := range found {
		p.Data = append(p.Data, notice{
			ID: n.ID, Kind: string(n.Kind), SubscriberID: n.Subscriber, SubscriptionID: orNull(n.Subscription), DeliveryID: orNull(n.Delivery),
			Detail: n.Detail, CreatedAt: n.CreatedAt.UTC(), AcknowledgedAt: timeOrNull(n.AcknowledgedAt),
		})
	}
	return p, answered(err)
}

func (s *stored) acknowledge(ctx context.Context, id string) error {
	_, err := s.history.Acknowledge(ctx, id, "")
	if errors.Is(err, sender.ErrNotFound) {
		return no("there is no such notice: %s", id)
	}
	return answered(err)
}

func viewEvent(e sender.EventInfo, version int64) eventInfo {
	return eventInfo{e.ID, e.Type, object(e.Object), version, e.CreatedAt.UTC()}
}

func (f *filter) replay() replay.Filter {
	return replay.Filter{
		Status: sender.Status(f.status), Subscription: f.subscription, Subscriber: f.subscriber, EventType: f.eventType,
		Since: f.since.Time, Until: f.until.Time, ErrorClass: sender.Class(f.class), StatusCode: f.code,
	}
}

func (s *stored) preview(ctx context.Context, f filter) (matched, error) {
	p, err := s.replays.Preview(ctx, f.replay())
	m := matched{Count: p.Count, Oldest: timeOrNull(p.Oldest), Newest: timeOrNull(p.Newest)}
	for _, one := range p.Subscriptions {
		m.Subscriptions = append(m.Subscriptions, share{one.Subscription, one.Count})
	}
	return m, answered(err)
}

func (s *stored) replay(ctx context.Context, f filter, rate float64, force bool) (string, error) {
	r, err := s.replays.Create(ctx, replay.Request{Filter: f.replay(), Rate: rate, Force: force, By: "surehook replay"})
	return r.ID, answered(err)
}

func (s *stored) replayed(ctx context.Context, id string) (replayState, error) {
	r, err := s.replays.Get(ctx, id)
	return replayState{
		ID: r.ID, Status: string(r.Status), Matched: r.Matched, Sent: r.Admitted, Skipped: r.Skipped, TooOld: r.TooOld, More: r.More,
		Ended: r.Status == replay.Finished || r.Status == replay.Cancelled,
	}, answered(err)
}

func (s *stored) cancelReplay(ctx context.Context, id string) error {
	_, err := s.replays.Cancel(ctx, id)
	return answered(err)
}

func (s *stored) publish(ctx context.Context, e sender.Event) (sender.Ref, error) {
	p, err := sender.NewPublisher(s.db.store, nil)
	if err != nil {
		return sender.Ref{}, err
	}
	ref, err := p.Publish(ctx, e)
	return ref, answered(err)
}

func (s *stored) events(subscriber string) (catchup.Source, error) {
	r, err := feed.NewReader(s.db.store, &feed.ReaderConfig{Poll: 250 * time.Millisecond})
	if subscriber == "" {
		subscriber = sender.Operator
	}
	return &storedFeed{r, subscriber}, err
}

// storedFeed reads the feed of a database as a Client reads a server's.
type storedFeed struct {
	reader *feed.Reader
	viewer string
}

// Page implements catchup.Source.
func (s *storedFeed) Page(ctx context.Context, after string, limit int, wait time.Duration) (catchup.Page, error) {
	p, err := s.reader.Page(ctx, feed.Query{Viewer: s.viewer, After: after, Limit: limit, Wait: wait})
	var expired *feed.ExpiredError
	if errors.As(err, &expired) {
		return catchup.Page{}, &catchup.ExpiredError{Next: expired.Next}
	}
	if err != nil {
		return catchup.Page{}, answered(err)
	}
	out := catchup.Page{Next: p.Next}
	for i := range p.Events {
		out.Events = append(out.Events, json.RawMessage(feed.AppendEvent(nil, &p.Events[i])))
	}
	return out, nil
}

func viewDelivery(d sender.Delivery) delivery {
	return delivery{
		ID: d.ID, SubscriptionID: d.Subscription, SubscriberID: d.Subscriber, URL: d.URL,
		Event:  viewEvent(d.Event, d.Version),
		Status: string(d.Status), AttemptCount: d.AttemptCount, NextAttemptAt: timeOrNull(d.NextAttemptAt), LastErrorClass: string(d.LastErrorClass),
	}
}

// orNull is null for a zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
