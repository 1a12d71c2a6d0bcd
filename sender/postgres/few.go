package postgres

import (
	"strconv"
	"strings"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// At ordinary rates a step finds a few events for a few subscriptions. Then one statement
// reads the events with their bodies and their matches, and those that lock the heads of
// these, and of the results, follow it. All that is one trip, with the statement that begins
// the step. Where there is more of anything, each is read by itself.
const (
	fewEvents     = 16
	fewDeliveries = 16        // that the last step made, and results of this one
	fewOfOne      = 64        // that one event makes
	smallBody     = 16 * 1024 // bytes
)

// fewColumns tell what a claim must read of a match besides.
const fewColumns = `s.status = 'active' AND p.since_seq IS NULL AS plain, ` + filteredColumn + ` AS filtered`

// selectFew is selectUnexpanded for when no event is begun, with a row for each match. It
// leaves the subscriptions that may get an event to the statements behind it: see toLock.
//
// It is safe to read the bodies before the claim: whoever removes a body waits for the
// expander before looking for what is in flight.
var selectFew = `SELECT o.seq, o.event, o.patterns, o.subscriber, o.subscription, o.xid::text, o.created_at, o.notice, o.bytes, o.about,
		e.body IS NOT NULL, coalesce(e.id, ''), coalesce(e.type, ''), coalesce(e.object_type, ''), coalesce(e.object_id, ''), coalesce(e.url, ''), coalesce(e.traceparent, ''), e.body,
		coalesce(a.subscription, 0), coalesce(a.subscriber, 0), coalesce(a.pattern, ''), coalesce(a.plain, true), coalesce(a.filtered, 0),
		set_config('surehook.to_lock', concat(current_setting('surehook.to_lock', true), coalesce(a.subscription, 0), ',', o.subscription, ','), true)
	FROM (SELECT * FROM surehook_outbox WHERE current_setting('surehook.expanding') = 'true' AND seq >= ` + fromBound("$2", "$4") + ` ORDER BY seq LIMIT $1) o
	LEFT JOIN LATERAL (SELECT id, type, object_type, object_id, url, traceparent, body FROM surehook_events WHERE no = o.event AND o.bytes <= ` + strconv.Itoa(smallBody) + ` OFFSET 0) e ON true
	LEFT JOIN LATERAL (
		SELECT x.* FROM unnest(string_to_array(o.patterns, ' ')) AS t(pattern)
		CROSS JOIN (VALUES (o.subscriber), (nullif((SELECT no FROM surehook_subscribers WHERE id = $3), o.subscriber))) AS r(subscriber)
		CROSS JOIN LATERAL (
			(SELECT p.subscription, p.subscriber, p.pattern, ` + fewColumns + ` FROM surehook_patterns p JOIN surehook_subscriptions s ON s.no = p.subscription
				WHERE o.subscriber <> 0 AND (p.subscriber, p.pattern, p.subscription) > (r.subscriber, t.pattern, 0) AND (p.subscriber, p.pattern) <= (r.subscriber, t.pattern)
				ORDER BY p.subscriber, p.pattern, p.subscription LIMIT ` + strconv.Itoa(fewOfOne) + `)
			UNION ALL (SELECT p.subscription, 0, p.pattern, ` + fewColumns + ` FROM surehook_patterns p JOIN surehook_subscriptions s ON s.no = p.subscription
				WHERE r.subscriber = 0 AND (p.pattern, p.subscription) > (t.pattern, 0) AND p.pattern <= t.pattern
				ORDER BY p.pattern, p.subscription LIMIT ` + strconv.Itoa(fewOfOne) + `)) x
		WHERE o.subscription = 0 LIMIT ` + strconv.Itoa(fewOfOne) + `) a ON true
	ORDER BY o.seq`

// toLock are the subscriptions of $1, and those that selectFew has left. 0 is none.
const toLock = `($1::bigint[] || concat('{', current_setting('surehook.to_lock', true), '0}')::bigint[])`

var (
	// lockFew is lockHeadsAt of what is to be locked, with where rows may be.
	lockFew = overRows(`WITH found AS MATERIALIZED (
			SELECT coalesce((SELECT h.ctid FROM surehook_heads h WHERE h.ctid = (SELECT k.at FROM unnest($2::bigint[], $3::tid[]) AS k(no, at) WHERE k.no = u.no) AND h.subscription = u.no),
				(SELECT h.ctid FROM surehook_heads h WHERE h.subscription = u.no)) AS at
			FROM (SELECT DISTINCT no FROM unnest(` + toLock + `) AS l(no) WHERE no > 0 ORDER BY no) u)
		SELECT h.* FROM found CROSS JOIN LATERAL (SELECT ` + headColumns + ` FROM surehook_heads WHERE ctid = found.at FOR UPDATE) h`)
	selectFewTargets = strings.Replace(selectTargets, `ANY($1)`, `ANY(`+toLock+`)`, 1)
)

// few are events as they are read, with the matches of the last of them.
type few struct {
	*expansion
	all   *matches
	found []unexpanded
	read  *payloads

	known    []int64 // subscriptions with results, or that may get an event
	matches  []*match
	patterns []pattern
	plain    bool // no match needs more to be read than that it matches
}

// findFew is find for a few events, none of which is begun. It keeps their matches where
// these are plain, and locks the heads that they and the results need.
func (e *expansion) findFew(events int, from bound, all *matches, l *loading) ([]unexpanded, error) {
	f := few{expansion: e, all: all, read: newPayloads(events), known: l.results()}
	e.early = append(e.early, f.read)
	recent := distinct(append(e.scanFrom.recent(), f.known...))
	qs := []query{
		e.query(selectFew, events, from.seq, sender.Operator, from.xids()).rows(f.scan),
		l.headsOf(e.query(lockFew.of(len(recent)), f.known, given(recent), given(rowsAt(&e.rowAt, e.rowAt.heads, recent)))),
	}
	qs = append(append(qs, l.takeLeases()...), l.targetsOf(e.query(selectFewTargets, f.known)))
	err := e.send(qs...)
	if err == nil {
		f.keep()
		l.known, l.locked = distinct(f.known), true
	}
	return f.found, err
}

func (f *few) scan(r rows) error {
	var ev unexpanded
	var xid string
	var read, plain bool
	var p dispatch.Payload
	var a match
	var q pattern
	err := r.Scan(&ev.seq, &ev.event, &ev.patternText, &ev.subscriber, &ev.subscription, &xid, &ev.published, &ev.notice, &ev.bytes, &ev.about,
		&read, &p.Event.ID, &p.Event.Type, &p.Event.Object.Type, &p.Event.Object.ID, &p.Event.URL, &p.Event.Traceparent, &p.Body,
		&a.subscription, &q.subscriber, &q.text, &plain, &a.filtered, nil)
	if err != nil {
		return err
	}
	if n := len(f.found); n == 0 || f.found[n-1].seq != ev.seq {
		f.keep()
		ev.patterns = strings.Split(ev.patternText, " ")
		if ev.xid, err = parseXID(xid); err != nil {
			return err
		}
		f.found, f.plain = append(f.found, ev), ev.subscription == 0
		if read {
			p.Event.CreatedAt, p.Event.Notice = ev.published.time(), ev.notice
			f.read.add(ev.event, &p)
		}
	}
	f.plain = f.plain && plain
	if a.subscription != 0 {
		f.matches, f.patterns = append(f.matches, &a), append(f.patterns, q)
		f.known = append(f.known, a.subscription)
	}
	if ev.subscription != 0 {
		f.known = append(f.known, ev.subscription)
	}
	return nil
}

// keep keeps the matches of the last event, if all of them are known.
func (f *few) keep() {
	if f.plain && len(f.matches) < fewOfOne {
		for _, q := range f.all.patternsOf(&f.found[len(f.found)-1]) {
			f.all.by[q] = nil
		}
		for i, a := range f.matches {
			f.all.by[f.patterns[i]] = append(f.all.by[f.patterns[i]], a)
		}
	}
	f.matches, f.patterns = nil, nil
}

// many tells whether an event has more matches than selectFew finds, whoever of them gets it.
func (all *matches) many(ev unexpanded) bool {
	n := 0
	for _, q := range all.patternsOf(&ev) {
		n += len(all.by[q])
	}
	return n >= fewOfOne
}
