package crash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/replay"
)

// checkDisabled checks, while processes go on, that a decision and its consequences come
// together: a disabled subscription has its notice.
func (r *run) checkDisabled(ctx context.Context) error {
	disabled, _, err := r.own.history.Subscriptions(ctx, sender.SubscriptionQuery{Status: sender.SubscriptionDisabled})
	if err != nil {
		return err
	}
	for _, s := range disabled {
		told, _, err := r.own.history.Notices(ctx, history.NoticeQuery{Kind: sender.NoticeDisabled, Subscription: s.ID, Limit: 1})
		if err != nil {
			return err
		}
		if len(told) == 0 || told[0].CreatedAt.Before(s.DisabledAt) {
			r.witness.broke("%s is disabled, and there is no notice of it", s.ID)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.DisabledSeen += len(disabled)
	return nil
}

// checkDead checks likewise that a dead letter has its notice.
func (r *run) checkDead(ctx context.Context) error {
	dead, _, err := r.own.history.Deliveries(ctx, history.DeliveryQuery{Status: sender.StatusDeadLettered, Limit: 20})
	if err != nil {
		return err
	}
	checked := 0
	for _, d := range dead {
		told, _, err := r.own.history.Notices(ctx, history.NoticeQuery{Kind: sender.NoticeDeadLettered, Subscription: d.Subscription, Limit: 200})
		if err != nil {
			return err
		}
		if len(told) == 200 {
			continue // it may be one of the others
		}
		checked++
		if !slices.ContainsFunc(told, func(n sender.Notice) bool { return n.Delivery == d.ID }) {
			r.witness.broke("%s is dead-lettered, and there is no notice of it", d.ID)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.DeadSeen += checked
	return nil
}

// finish brings everything to its end: the endpoint succeeds, dead letters are
// replayed, and disabled subscriptions resumed.
func (r *run) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(r.cfg.Kills)*time.Second)
	defer cancel()
	r.witness.mu.Lock()
	r.witness.answers = true
	r.witness.mu.Unlock()
	d, err := r.own.dispatcher("", "the last one", dispatch.Hooks{})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 2)
	go func() { ended <- d.Run(running) }()
	go func() { ended <- r.own.jobs.Run(running) }()
	err = r.wait(ctx)
	stop()
	return errors.Join(err, <-ended, <-ended)
}

// wait waits until no delivery and no job remains.
func (r *run) wait(ctx context.Context) error {
	for ; ; time.Sleep(20 * time.Millisecond) { // until leases end and retries are due
		if err := r.own.resumeDisabled(ctx); err != nil {
			return err
		}
		// The jobs come first: a job that ends after the counts were taken
		// publishes an event that is not among them.
		left, err := r.own.column(ctx, `SELECT id FROM surehook_jobs WHERE status IN ('queued', 'running')
			UNION ALL SELECT id FROM surehook_replays WHERE status = 'running' LIMIT 1`)
		if err != nil {
			return err
		}
		c, err := r.own.history.Counts(ctx)
		if err != nil {
			return err
		}
		switch {
		case c.Live+c.Held+c.Unexpanded > 0 || len(left) > 0:
		case c.DeadLettered == 0:
			return nil
		default:
			if _, err := r.own.replays.Create(ctx, replay.Request{}); err != nil {
				return err
			}
		}
	}
}

// check checks, at the end, every promise against the witness's records.
func (r *run) check(ctx context.Context) error {
	deliveries, err := r.deliveries(ctx)
	if err != nil {
		return err
	}
	things, err := r.own.column(ctx, "SELECT id FROM things")
	if err != nil {
		return err
	}
	r.checkPublished(things, deliveries)
	for _, d := range deliveries {
		r.checkDelivery(d)
	}
	for _, check := range []func(context.Context) error{r.checkJobs, r.checkReceived, r.checkLeft, r.count} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	w := r.witness
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.broken) > 0 {
		return fmt.Errorf("%d promises were broken:\n\t%s", len(w.broken), strings.Join(w.broken[:min(len(w.broken), 20)], "\n\t"))
	}
	return nil
}

// deliveries returns all deliveries, with their attempts.
func (r *run) deliveries(ctx context.Context) (all []sender.Delivery, err error) {
	for cursor := ""; ; {
		page, next, err := r.own.history.Deliveries(ctx, history.DeliveryQuery{Limit: 200, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			if d, err = r.own.history.Delivery(ctx, d.ID); err != nil {
				return nil, err
			}
			all = append(all, d)
		}
		if next == "" {
			return all, nil
		}
		cursor = next
	}
}

// checkPublished checks I1 and I2: a committed event has its delivery, and one that was
// rolled back has none and was never posted.
func (r *run) checkPublished(things []string, deliveries []sender.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	objects, ids := map[string]int{}, map[string]bool{}
	for _, d := range deliveries {
		ids[d.Event.ID] = true
		if d.Event.Object.Type == "thing" {
			objects[d.Event.Object.ID]++
		}
	}
	for _, thing := range things {
		if strings.HasPrefix(thing, undone) {
			r.witness.broke("I2: %s was rolled back, and is there", thing)
		}
		if objects[thing] != 1 {
			r.witness.broke("I1: %s was committed, and has %d deliveries", thing, objects[thing])
		}
	}
	if len(objects) != len(things) {
		r.witness.broke("I2: %d things were committed, and there are deliveries of %d", len(things), len(objects))
	}
	for id, object := range r.events {
		if !ids[id] || objects[object] != 1 {
			r.witness.broke("I1: %s, of %s, was acknowledged, and is lost", id, object)
		}
	}
	r.witness.mu.Lock()
	posted := make([]string, 0, len(r.witness.posts))
	for id := range r.witness.posts {
		posted = append(posted, id)
	}
	r.witness.mu.Unlock()
	for _, id := range posted {
		if !ids[id] {
			r.witness.broke("I2: %s was posted, and was never committed", id)
		}
	}
	r.report.Events, r.report.Acknowledged, r.report.Deliveries = len(ids), len(r.events), len(deliveries)
}

// checkDelivery checks I3 to I7 for a delivery that has ended.
func (r *run) checkDelivery(d sender.Delivery) {
	broke := func(format string, args ...any) {
		r.witness.broke(d.ID+" of "+d.Event.ID+": "+format, args...)
	}
	if d.Status != sender.StatusDelivered {
		broke("I1: it is %s", d.Status)
	}
	ended := false
	for i, a := range d.Attempts {
		if a.Number != i+1 {
			broke("I7: the number of attempt %d is %d", i+1, a.Number)
		}
		if ended && d.Event.Type != replayed {
			broke("I6: attempt %d was made although it was delivered", a.Number)
		}
		ended = ended || a.Class == sender.ClassNone
		r.report.Attempts++
		if a.Class == sender.ClassInterrupted {
			r.report.Interrupted++
		}
	}
	if !ended {
		broke("I1: it is delivered, and no attempt of it has succeeded")
	}
	r.witness.mu.Lock()
	posts := r.witness.posts[d.Event.ID]
	r.witness.mu.Unlock()
	r.report.Posts += len(posts)
	numbers := map[int]bool{}
	for _, p := range posts {
		if numbers[p.attempt] || p.attempt < 1 || p.attempt > len(d.Attempts) {
			broke("I3: attempt %d was posted twice, or is not recorded: %d are", p.attempt, len(d.Attempts))
		}
		numbers[p.attempt] = true
		if p.body != string(d.Body) {
			broke("I4: attempt %d has other bytes", p.attempt)
		}
	}
	r.mu.Lock()
	late := r.late[d.Event.ID]
	r.mu.Unlock()
	r.report.Late += len(late)
	for _, number := range late {
		// A database that is killed in the middle of a commit may have recorded
		// the result; then the second try is too late.
		unknown := r.report.Kills[ofDatabase] > 0
		if number < 1 || number > len(d.Attempts) || !unknown && d.Attempts[number-1].Class != sender.ClassInterrupted {
			broke("I5: the result of attempt %d came too late, and has changed something", number)
		}
	}
	for _, a := range d.Attempts {
		if a.Class == sender.ClassNone && !numbers[a.Number] {
			broke("I3: attempt %d has succeeded, and was never posted", a.Number)
		}
	}
}

// checkJobs checks that each accepted job has ended, that each step has had its effect
// once, and that each end was announced once.
func (r *run) checkJobs(ctx context.Context) error {
	r.mu.Lock()
	accepted := slices.Clone(r.jobs)
	r.mu.Unlock()
	for _, id := range accepted {
		job, err := r.own.jobs.Get(ctx, jobs.Key{ID: id, Owner: owner})
		if err != nil {
			r.witness.broke("%s was accepted: %v", id, err)
		} else if job.Status != jobs.Succeeded {
			r.witness.broke("%s was accepted, and is %s", id, job.Status)
		}
	}
	wrong, err := r.own.column(ctx, `SELECT j.id FROM surehook_jobs j WHERE status <> 'succeeded'
		OR (SELECT count(*) FROM steps s WHERE s.job = j.id) <> 2 OR (SELECT count(DISTINCT step) FROM steps s WHERE s.job = j.id) <> 2
		OR (SELECT count(*) FROM surehook_events e WHERE e.type = 'job.completed' AND e.object_id = j.id) <> 1`)
	if err != nil {
		return err
	}
	for _, id := range wrong {
		r.witness.broke("%s has not ended, had other effects than those of its two steps, or was not told of once", id)
	}
	all, err := r.own.column(ctx, `SELECT id FROM surehook_jobs`)
	r.report.Jobs = len(all)
	return err
}

// checkReceived checks I10 at the end: an event has an effect if and only if it has a
// marker, and one of each; and each object's version is that of its newest effect.
func (r *run) checkReceived(ctx context.Context) error {
	for promise, query := range map[string]string{
		"I10: %s has two effects":                      `SELECT event FROM effects GROUP BY event HAVING count(*) > 1`,
		"I10: %s has an effect, and no marker":         `SELECT event FROM effects WHERE event NOT IN (SELECT id FROM surehook_dedup_markers)`,
		"I10: %s has a marker, and no effect":          `SELECT id FROM surehook_dedup_markers WHERE id NOT IN (SELECT event FROM effects)`,
		"I10: the version of %s is not its newest one": `SELECT object_id FROM surehook_dedup_versions v WHERE version <> (SELECT max(version) FROM effects e WHERE e.object = v.object_id)`,
		"I10: an effect of %s came after a newer one":  `SELECT object FROM effects GROUP BY object HAVING count(*) <> max(version)`,
	} {
		found, err := r.own.column(ctx, query)
		if err != nil {
			return err
		}
		for _, id := range found {
			r.witness.broke(promise, id)
		}
	}
	return nil
}

// checkLeft checks the rows' part of I12: nothing live remains, and heads count none.
func (r *run) checkLeft(ctx context.Context) error {
	queries := []string{
		"SELECT 'lease' FROM surehook_leases", "SELECT 'pending' FROM surehook_pending", "SELECT 'waiting' FROM surehook_waiting",
		"SELECT 'ended' FROM surehook_ended", "SELECT 'count of a head' FROM surehook_heads WHERE pending + waiting + leased + dead <> 0",
	}
	if r.place.DSN != "" {
		queries = append(queries, "SELECT 'outbox' FROM surehook_outbox",
			"SELECT 'gap between positions' WHERE (SELECT coalesce(max(position), 0) FROM surehook_feed) <> (SELECT count(*) FROM surehook_feed)")
	}
	for _, query := range queries {
		left, err := r.own.column(ctx, query)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			r.witness.broke("I12: left over: %d × %s", len(left), left[0])
		}
	}
	return nil
}

// count fills in the report's figures of notices and of the wire.
func (r *run) count(ctx context.Context) error {
	for kind, n := range map[sender.NoticeKind]*int{sender.NoticeDeadLettered: &r.report.DeadLetters, sender.NoticeDisabled: &r.report.Disabled} {
		all, err := r.own.column(ctx, "SELECT id FROM surehook_notices WHERE kind = '"+string(kind)+"'")
		if err != nil {
			return err
		}
		*n = len(all)
	}
	r.witness.mu.Lock()
	defer r.witness.mu.Unlock()
	r.report.Cut = r.witness.cut
	return nil
}
