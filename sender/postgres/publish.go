package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
)

// publishShape is which of its parts a publish needs.
type publishShape struct {
	given        bool // it comes with a version
	keyed        bool // it has an idempotency key
	subscriber   bool // it is addressed
	subscription bool
}

// text is one statement that does all of a publish: it finds the addressee, takes
// the key, raises the version, and stores the event and its outbox row; each part
// depends on the one before. What it returns tells which of them failed.
func (p publishShape) text() string {
	var with []string
	addressee, from := "0", ""
	subscription := "0"
	if p.subscriber {
		with = append(with, `a AS (SELECT no FROM surehook_subscribers WHERE id = $9 AND deleted = 0)`)
		addressee, from = "a.no", "a"
	}
	if p.subscription {
		with = append(with, `b AS (SELECT s.no, a.no AS subscriber FROM surehook_subscriptions s JOIN a ON a.no = s.subscriber
			WHERE s.id = $10 AND s.status IN ('active', 'paused', 'disabled'))`)
		addressee, subscription, from = "b.subscriber", "b.no", "b"
	}
	gate := from // what the next part depends on
	if p.keyed {
		with = append(with, `k AS (INSERT INTO surehook_keys (scope, key, hash, event) SELECT $11, $12, $13, $1`+fromClause(gate)+`
			ON CONFLICT (scope, key) DO NOTHING RETURNING event)`)
		gate = "k"
	}
	body := `$6::bytea || convert_to(v.version::text, 'UTF8') || $7::bytea`
	if p.given {
		with = append(with, `v AS (INSERT INTO surehook_objects AS o (type, id, version) SELECT $3, $4, $5::bigint`+fromClause(gate)+`
			ON CONFLICT (type, id) DO UPDATE SET version = excluded.version WHERE excluded.version > o.version RETURNING version)`)
	} else {
		with = append(with, `v AS (INSERT INTO surehook_objects AS o (type, id, version) SELECT $3, $4, 1`+fromClause(gate)+`
			ON CONFLICT (type, id) DO UPDATE SET version = o.version + 1 WHERE o.version < $5::bigint RETURNING version)`)
	}
	tables := "v"
	if from != "" {
		tables += ", " + from
	}
	with = append(with,
		`e AS (INSERT INTO surehook_events (id, type, object_type, object_id, version, subscriber, subscription, created_at, notice, body, url)
			SELECT $1, $2, $3, $4, v.version, `+addressee+`, `+subscription+`, {now}, $8::boolean, `+body+`, $15::text FROM `+tables+`
			RETURNING no, subscriber, subscription, created_at, notice)`,
		`x AS (INSERT INTO surehook_outbox (event, patterns, subscriber, subscription, created_at, notice)
			SELECT no, $14, subscriber, subscription, created_at, notice FROM e)`)
	found := func(part, table string) string {
		if table == "" {
			return "true"
		}
		return "EXISTS (SELECT 1 FROM " + part + ")"
	}
	key, whom, which := "", "", ""
	if p.keyed {
		key = "k"
	}
	if p.subscriber {
		whom = "a"
	}
	if p.subscription {
		which = "b"
	}
	text := `WITH ` + strings.Join(with, ",\n") + `
		SELECT ` + found("a", whom) + `, ` + found("b", which) + `, ` + found("k", key) + `, coalesce((SELECT version FROM v), 0),
			coalesce((SELECT subscription FROM e), 0), ` + durable
	return text
}

func fromClause(table string) string {
	if table == "" {
		return ""
	}
	return " FROM " + table
}

// publishTexts are the statements of all shapes, with the parameters that each has.
var publishTexts = func() map[publishShape]numbered {
	all := map[publishShape]numbered{}
	for _, given := range []bool{false, true} {
		for _, keyed := range []bool{false, true} {
			for addressed := range 3 {
				p := publishShape{given, keyed, addressed > 0, addressed > 1}
				all[p] = renumber(p.text())
			}
		}
	}
	return all
}()

// numbered is a statement some of whose parameters were left out.
type numbered struct {
	text string
	uses []int // which of all parameters, from 0
}

// renumber closes the gaps between a statement's parameters.
func renumber(text string) (n numbered) {
	const most = 15
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
	selectKey = `SELECT e.id, e.version, e.subscription, k.hash FROM surehook_keys k JOIN surehook_events e ON e.id = k.event
		WHERE k.scope = $1 AND k.key = $2`
	selectVersion = `SELECT version FROM surehook_objects WHERE type = $1 AND id = $2`
)

// PublishTx implements sender.OutboxStore. With a pgx.Tx it is one round trip,
// however many drafts there are; with database/sql, which cannot pipeline, it is one
// for each. synchronous_commit, if it is off, is set to on for the transaction.
func (s *Store[Tx]) PublishTx(ctx context.Context, tx Tx, drafts []sender.Draft) ([]sender.Ref, error) {
	w, err := s.callers(ctx, tx)
	if err != nil {
		return nil, err
	}
	refs, err := w.publish(drafts)
	if err == nil {
		s.published.Store(true)
	}
	return refs, err
}

// published is what a publish's statement returns.
type published struct {
	subscriber, subscription, key bool
	version, onlySubscription     int64
}

func (w *work) publish(drafts []sender.Draft) ([]sender.Ref, error) {
	qs := make([]query, len(drafts))
	for i := range drafts {
		qs[i] = w.publishQuery(&drafts[i])
	}
	all := make([]published, len(drafts))
	err := w.many(w.ctx, qs, func(i int, r rows) error {
		p := &all[i]
		var commit *string // database/sql has no column left out
		return r.Scan(&p.subscriber, &p.subscription, &p.key, &p.version, &p.onlySubscription, &commit)
	})
	if err != nil {
		return nil, fail("publishing", err)
	}
	refs := make([]sender.Ref, len(drafts))
	for i := range drafts {
		if refs[i], err = w.ref(&drafts[i], &all[i]); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

func (w *work) publishQuery(d *sender.Draft) query {
	shape := publishShape{given: d.Version != 0, keyed: d.Key != "", subscriber: d.Subscriber != "", subscription: d.Subscription != ""}
	n := publishTexts[shape]
	version := d.Version
	if version == 0 {
		version = ident.MaxVersion
	}
	all := [...]any{d.ID, d.Type, d.Object.Type, d.Object.ID, version, d.BodyHead, d.BodyTail, d.Notice,
		d.Subscriber, d.Subscription, d.KeyScope, d.Key, d.KeyHash[:], strings.Join(sender.Patterns(d.Type), " "), d.URL}
	args := make([]any, len(n.uses))
	for i, of := range n.uses {
		args[i] = all[of]
	}
	return query{w.text(n.text), args}
}

// ref is what has become of a draft.
func (w *work) ref(d *sender.Draft, p *published) (ref sender.Ref, err error) {
	if d.Key != "" && !p.key {
		// Nothing of it was done: the key is known, or there is no addressee.
		ref, known, err := w.firstOfKey(d)
		if err != nil || known {
			return ref, err
		}
		if p.subscriber && p.subscription {
			return ref, fmt.Errorf("postgres: publishing: %w: what was published under key %q is forgotten just now", sender.ErrRetryTx, d.Key)
		}
	}
	switch {
	case !p.subscriber:
		return ref, fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, d.Subscriber)
	case !p.subscription:
		return ref, fmt.Errorf("%w: subscription %q of subscriber %q", sender.ErrNotFound, d.Subscription, d.Subscriber)
	case p.version == 0:
		refused := &sender.VersionError{Object: d.Object, Given: d.Version}
		if refused.Given == 0 {
			refused.Given = ident.MaxVersion // there is no next one
		}
		if err := w.row(selectVersion, d.Object.Type, d.Object.ID).Scan(&refused.Stored); err != nil {
			return ref, fail("reading a version", err)
		}
		return ref, refused
	}
	return sender.Ref{ID: d.ID, Version: p.version, Delivery: onlyDelivery(d.ID, p.onlySubscription)}, nil
}

// onlyDelivery is the id of the delivery of an event that is addressed to one
// subscription.
func onlyDelivery(event string, subscription int64) string {
	if subscription == 0 {
		return ""
	}
	return deliveryID(event, subscription)
}

// firstOfKey finds what was published under a draft's key.
func (w *work) firstOfKey(d *sender.Draft) (ref sender.Ref, known bool, err error) {
	var hash []byte
	var subscription int64
	err = w.row(selectKey, d.KeyScope, d.Key).Scan(&ref.ID, &ref.Version, &subscription, &hash)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return sender.Ref{}, false, nil
	case err != nil:
		return sender.Ref{}, false, fail("looking for an idempotency key", err)
	case len(hash) != sha256.Size || [sha256.Size]byte(hash) != d.KeyHash:
		return sender.Ref{}, false, fmt.Errorf("%w: key %q in scope %q", sender.ErrIdempotencyKey, d.Key, d.KeyScope)
	}
	ref.Duplicate, ref.Delivery = true, onlyDelivery(ref.ID, subscription)
	return ref, true, nil
}
