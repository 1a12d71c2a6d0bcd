package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

// publishShape says which parts a publish needs.
type publishShape struct {
	given        bool // the event comes with a version
	keyed        bool // there is an idempotency key
	subscriber   bool // the event is addressed to a subscriber
	subscription bool
	about        bool // the event announces a notice about a subscription
	traced       bool // the publisher gave a trace's context
}

// text returns one statement that does all of a publish. It finds the addressee, takes the
// key, raises the version, and stores the event and its outbox row under one number. Each
// part depends on the one before. It returns a row if all was done. Parts that are not
// needed are left out, since each costs every publish.
func (p publishShape) text() string {
	var with []string
	addressee, from := "0", ""
	subscription := "0"
	if p.subscriber {
		with = append(with, `a AS (`+selectAddressee+`$9)`)
		addressee, from = "a.no", "a"
	}
	if p.subscription {
		with = append(with, `b AS (SELECT s.no, a.no AS subscriber FROM surehook_subscriptions s JOIN a ON a.no = s.subscriber
			WHERE s.status IN ('active', 'paused', 'disabled') AND s.id = $10)`)
		addressee, subscription, from = "b.subscriber", "b.no", "b"
	}
	gate := from // the part on which the next one depends
	if p.keyed {
		with = append(with, `k AS (INSERT INTO surehook_keys (scope, key, hash, event) SELECT $11, $12, $13, $1`+fromClause(gate)+`
			ON CONFLICT (scope, key) DO NOTHING RETURNING event)`)
		gate = "k"
	}
	if p.given {
		with = append(with, `v AS (INSERT INTO surehook_objects AS o (type, id, version) SELECT $3, $4, $5::bigint`+fromClause(gate)+`
			ON CONFLICT (type, id) DO UPDATE SET version = excluded.version WHERE excluded.version > o.version RETURNING version)`)
	} else {
		with = append(with, `v AS (INSERT INTO surehook_objects AS o (type, id, version) SELECT $3, $4, (SELECT version FROM surehook_floor) + 1`+fromClause(gate)+`
			ON CONFLICT (type, id) DO UPDATE SET version = greatest(o.version + 1, excluded.version) WHERE o.version < $5::bigint RETURNING version)`)
	}
	about, aboutNo := "", ""
	if p.about {
		about, aboutNo = ", about", ", coalesce((SELECT no FROM surehook_subscriptions WHERE id = $16), 0)"
	}
	traceparent, traced := "", ""
	if p.traced {
		traceparent, traced = ", traceparent", ", $17::text"
	}
	tables := "v"
	if from != "" {
		tables += ", " + from
	}
	with = append(with,
		`e AS (INSERT INTO surehook_events (id, type, object_type, object_id, version, subscriber, subscription, created_at, notice, body, url`+traceparent+`)
			SELECT $1, $2, $3, $4, v.version, `+addressee+`, `+subscription+`, {now}, $8::boolean, $6::bytea || convert_to(v.version::text, 'UTF8') || $7::bytea, $15::text`+traced+` FROM `+tables+`
			RETURNING no, version, subscriber, subscription, created_at, notice, octet_length(body) AS bytes)`,
		`x AS (INSERT INTO surehook_outbox (seq, event, patterns, subscriber, subscription, created_at, notice, bytes`+about+`)
			SELECT no, no, $14, subscriber, subscription, created_at, notice, bytes`+aboutNo+` FROM e)`)
	return `WITH ` + strings.Join(with, ",\n") + `
		SELECT version, subscription, ` + durable + ` FROM e`
}

func fromClause(table string) string {
	if table == "" {
		return ""
	}
	return " FROM " + table
}

// publishTexts returns the statements of all shapes, each with its parameters. They are made when
// something is first published, since not every program that has this package does that.
var publishTexts = sync.OnceValue(func() map[publishShape]numbered {
	all := map[publishShape]numbered{}
	for _, given := range []bool{false, true} {
		for _, keyed := range []bool{false, true} {
			for addressed := range 3 {
				for _, about := range []bool{false, true} {
					for _, traced := range []bool{false, true} {
						p := publishShape{given, keyed, addressed > 0, addressed > 1, about, traced}
						all[p] = renumber(p.text())
					}
				}
			}
		}
	}
	return all
})

// numbered is a statement without some of the parameters.
type numbered struct {
	text string
	uses []int // the parameters that are used, from 0
}

// renumber closes the gaps between a statement's parameters.
func renumber(text string) (n numbered) {
	const most = 17
	for i := most; i >= 1; i-- { // $12 before $1
		if strings.Contains(text, fmt.Sprintf("$%d", i)) {
			text = strings.ReplaceAll(text, fmt.Sprintf("$%d", i), fmt.Sprintf("{%d}", i))
		}
	}
	for i := 1; i <= most; i++ {
		name := fmt.Sprintf("{%d}", i)
		if strings.Contains(text, name) {
			n.uses = append(n.uses, i-1)
			text = strings.ReplaceAll(text, name, fmt.Sprintf("$%d", len(n.uses)))
		}
	}
	n.text = text
	return n
}

const (
	selectAddressee = `SELECT no FROM surehook_subscribers WHERE deleted = 0 AND id = `
	// selectWhether tells which of the addressees exist.
	selectWhether = `WITH a AS (` + selectAddressee + `$1)
		SELECT EXISTS (SELECT 1 FROM a), EXISTS (SELECT 1 FROM surehook_subscriptions s JOIN a ON a.no = s.subscriber
			WHERE s.status IN ('active', 'paused', 'disabled') AND s.id = $2)`
	selectKey = `SELECT e.id, e.version, e.subscription, k.hash FROM surehook_keys k JOIN surehook_events e ON e.id = k.event
		WHERE k.scope = $1 AND k.key = $2`
	// leaveKey gives back the key that a draft took before another part refused it.
	leaveKey      = `DELETE FROM surehook_keys WHERE scope = $1 AND key = $2 AND event = $3`
	selectVersion = `SELECT version FROM surehook_objects WHERE type = $1 AND id = $2`
)

// PublishTx implements sender.Outbox. With a pgx.Tx it is one round trip, however many
// drafts there are; with database/sql, which cannot pipeline, it is one for each draft. If
// synchronous_commit is off, it is set to on for the transaction.
func (s *Store[Tx]) PublishTx(ctx context.Context, tx Tx, drafts []sender.Draft) ([]sender.Ref, error) {
	w, err := s.callers(ctx, tx)
	if err != nil {
		return nil, err
	}
	refs, err := w.publish(drafts)
	if err == nil {
		s.published.Add(1)
	}
	return refs, err
}

func (w *work) publish(drafts []sender.Draft) ([]sender.Ref, error) {
	qs := make([]query, len(drafts))
	refs := make([]sender.Ref, len(drafts))
	for i := range drafts {
		qs[i] = w.publishQuery(&drafts[i]).rows(func(r rows) error {
			ref := sender.Ref{ID: drafts[i].ID}
			var subscription int64
			var commit *string // database/sql cannot leave a column out
			err := r.Scan(&ref.Version, &subscription, &commit)
			ref.Delivery = onlyDelivery(ref.ID, subscription)
			refs[i] = ref
			return err
		})
	}
	err := w.send(qs...)
	if err != nil {
		return nil, fail("publishing", err)
	}
	if !slices.ContainsFunc(refs, func(r sender.Ref) bool { return r.ID == "" }) {
		return refs, nil
	}
	nobody, err := w.nobody(drafts, refs)
	if err != nil {
		return nil, err
	}
	for i := range refs {
		if refs[i].ID != "" {
			continue
		}
		if refs[i], err = w.refused(&drafts[i], drafts[i+1:], nobody); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// nobody finds out in one trip which subscribers do not exist, among those whose drafts
// were not published and may be dropped. Where few customers have a webhook, most drafts
// are dropped.
func (w *work) nobody(drafts []sender.Draft, refs []sender.Ref) (map[string]bool, error) {
	var qs []query
	nobody := map[string]bool{}
	for i := range drafts {
		id := drafts[i].Subscriber
		if _, asked := nobody[id]; asked || refs[i].ID != "" || !drafts[i].IfSubscriberExists {
			continue
		}
		nobody[id] = false
		qs = append(qs, w.query(selectWhether, id, "").rows(func(r rows) error {
			var subscriber, subscription bool
			err := r.Scan(&subscriber, &subscription)
			nobody[id] = !subscriber
			return err
		}))
	}
	if len(qs) == 0 {
		return nil, nil
	}
	if err := w.send(qs...); err != nil {
		return nil, fail("looking for addressees", err)
	}
	return nobody, nil
}

func (w *work) publishQuery(d *sender.Draft) query {
	shape := publishShape{given: d.Version != 0, keyed: d.Key != "", subscriber: d.Subscriber != "", subscription: d.Subscription != "", about: d.About != "", traced: d.Traceparent != ""}
	n := publishTexts()[shape]
	version := d.Version
	if version == 0 {
		version = ident.MaxVersion
	}
	all := [...]any{d.ID, d.Type, d.Object.Type, d.Object.ID, version, d.BodyHead, d.BodyTail, d.Notice,
		d.Subscriber, d.Subscription, d.KeyScope, d.Key, d.KeyHash[:], strings.Join(rules.Patterns(d.Type), " "), d.URL, d.About, d.Traceparent}
	args := make([]any, len(n.uses))
	for i, of := range n.uses {
		args[i] = all[of]
	}
	return w.query(n.text, args...)
}

// refused finds out why a draft was not published: its key is known, or something forbids
// it. later are the drafts that were published after it: one of them may have taken its
// key. nobody are subscribers that do not exist.
func (w *work) refused(d *sender.Draft, later []sender.Draft, nobody map[string]bool) (ref sender.Ref, err error) {
	if d.Key != "" {
		ref, known, err := w.firstOfKey(d, later)
		if err != nil || known {
			return ref, err
		}
		if _, err := w.exec(leaveKey, d.KeyScope, d.Key, d.ID); err != nil {
			return ref, fail("leaving an idempotency key", err)
		}
	}
	if nobody[d.Subscriber] {
		return rules.NoSubscriber(d)
	}
	if d.Subscriber != "" {
		var subscriber, subscription bool
		if err := w.row(selectWhether, d.Subscriber, d.Subscription).Scan(&subscriber, &subscription); err != nil {
			return ref, fail("looking for an addressee", err)
		}
		switch {
		case !subscriber:
			return rules.NoSubscriber(d)
		case d.Subscription != "" && !subscription:
			return ref, fmt.Errorf("%w: subscription %q of subscriber %q", sender.ErrNotFound, d.Subscription, d.Subscriber)
		}
	}
	refusal := &sender.VersionError{Object: d.Object, Given: d.Version}
	if refusal.Given == 0 {
		refusal.Given = ident.MaxVersion // there is no next one
	}
	err = w.row(selectVersion, d.Object.Type, d.Object.ID).Scan(&refusal.Stored)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return ref, fail("reading a version", err)
	}
	if refusal.Stored >= refusal.Given {
		return ref, refusal
	}
	return ref, fmt.Errorf("postgres: publishing: %w: another transaction has just changed what was in the way of event %q", sender.ErrRetryTx, d.ID)
}

// onlyDelivery returns the id of the delivery of an event that is addressed to one
// subscription.
func onlyDelivery(event string, subscription int64) string {
	if subscription == 0 {
		return ""
	}
	return deliveryID(event, subscription)
}

// firstOfKey finds the event that was published first under a draft's key, unless that is one
// of later.
func (w *work) firstOfKey(d *sender.Draft, later []sender.Draft) (ref sender.Ref, known bool, err error) {
	var hash []byte
	var subscription int64
	err = w.row(selectKey, d.KeyScope, d.Key).Scan(&ref.ID, &ref.Version, &subscription, &hash)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return sender.Ref{}, false, nil
	case err != nil:
		return sender.Ref{}, false, fail("looking for an idempotency key", err)
	case slices.ContainsFunc(later, func(other sender.Draft) bool { return other.ID == ref.ID }):
		return sender.Ref{}, false, nil
	}
	ref.Delivery = onlyDelivery(ref.ID, subscription)
	ref, err = rules.Duplicate(d, ref, hash)
	return ref, err == nil, err
}
