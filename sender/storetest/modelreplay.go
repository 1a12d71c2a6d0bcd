package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// modelReplays is how many replays run or are paused at a time.
const modelReplays = 3

// modelReplay is a replay that runs or is paused.
type modelReplay struct {
	replay.Replay
	members   map[*modelDelivery]int // and how often each had ended then
	notBefore time.Time
}

// remains tells whether a delivery is still in the set of a replay.
func (r *modelReplay) remains(d *modelDelivery) bool {
	ends, member := r.members[d]
	return member && !d.live && !d.gone && !d.event.redacted && d.ends == ends
}

// sends tells whether a replay sends a delivery again, if it comes to it now.
func (m *model) sends(r *modelReplay, d *modelDelivery) bool {
	tooOld := !r.notBefore.IsZero() && d.event.created.Before(r.notBefore.Add(m.clock.Sub(r.CreatedAt)))
	return r.Status == replay.Running && r.remains(d) && !d.sub.deleted && !tooOld
}

func (d *modelDelivery) candidate() replay.Candidate {
	c := replay.Candidate{Subscription: d.sub.ID, Subscriber: d.sub.Subscriber, EventType: d.event.draft.Type, Published: d.event.created}
	if n := len(d.attempts); n > 0 {
		c.ErrorClass = d.attempts[n-1]
	}
	return c
}

// replayFilter draws a filter, if there is something that may be sent again.
func (m *model) replayFilter() (f replay.Filter, some bool) {
	var ended []sender.Status
	for _, d := range m.deliveries {
		if !d.live && d.status != sender.StatusCancelled && !slices.Contains(ended, d.status) {
			ended = append(ended, d.status)
		}
	}
	if len(ended) == 0 {
		return f, false
	}
	f.Status = ended[m.rand.IntN(len(ended))]
	switch m.rand.IntN(12) {
	case 0:
		f.Subscriber = m.owners[m.rand.IntN(len(m.owners))]
	case 1:
		f.EventType = "a.*"
	case 2:
		f.ErrorClass = sender.ClassTimeout
	case 3:
		f.Since = m.published()
	}
	return f, true
}

func (m *model) startReplay() {
	f, some := m.replayFilter()
	if len(m.replays) == modelReplays || !some {
		return
	}
	r := &modelReplay{Replay: replay.Replay{Filter: f}, members: map[*modelDelivery]int{}}
	var of *modelSub
	if m.rand.IntN(6) == 0 {
		of = m.any()
		r.Filter.Subscription, r.Filter.Subscriber = of.ID, ""
	}
	var oldest time.Time
	if m.rand.IntN(6) == 0 {
		r.notBefore = m.published()
	}
	for _, d := range m.deliveries {
		if d.live || d.status != r.Filter.Status || d.event.redacted || !r.Filter.Selects(d.candidate()) {
			continue
		}
		r.members[d] = d.ends
		if oldest.IsZero() || d.event.created.Before(oldest) {
			oldest = d.event.created
		}
	}
	got, err := m.Store.CreateReplay(m.ctx, r.Replay, replay.Bounds{NotBefore: r.notBefore})
	switch {
	case errors.Is(err, sender.ErrNotFound) && of != nil && of.deleted: // and pruned
		return
	case len(r.members) > 0 && oldest.Before(r.notBefore):
		m.errorIs(err, sender.ErrRetention, "replaying what was published before %v", r.notBefore)
		return
	}
	m.noError(err, "creating a replay of %+v", r.Filter)
	m.equal([]any{got.Status, got.Matched, got.More}, []any{replay.Running, int64(len(r.members)), false}, "status, Matched and More of a new replay of %+v", r.Filter)
	r.Replay = got
	m.replays = append(m.replays, r)
}

// stepReplays steps the replays. All of them are at their ends then, unless they may send a
// few: nobody says which these are, so the model takes it over. It sees that only of dead
// letters: another one may be superseded at once, and be what it was.
func (m *model) stepReplays() {
	limit := 1 + m.rand.IntN(3)
	for _, r := range m.replays {
		if r.Status == replay.Running && r.Filter.Status != sender.StatusDeadLettered {
			limit = plenty
		}
	}
	m.stepReplaysBy(limit)
}

func (m *model) stepReplaysBy(limit int) {
	step, err := m.Store.StepReplays(m.ctx, limit, nil)
	m.noError(err, "stepping replays")
	m.noticed += len(step.Notices)
	reads := map[string]sender.Status{}
	if limit < plenty && step.Admitted > 0 {
		for _, d := range m.list(history.DeliveryQuery{Limit: 200}) {
			reads[d.ID] = d.Status
		}
	}
	takes := func(d *modelDelivery) bool {
		return limit == plenty || len(reads) > 0 && reads[d.id] != sender.StatusDeadLettered
	}
	sent := 0
	for _, r := range m.replays {
		for _, d := range m.deliveries {
			if m.sends(r, d) && takes(d) {
				m.sendAgain(d)
				m.saw["replayed"]++
				sent++
			}
		}
	}
	m.equal(step.Admitted, sent, "Admitted of a step of up to %d", limit)
	m.check(sent <= limit, "a step has admitted %d, at most %d were allowed", sent, limit)
	m.compareReplays(step, limit)
}

// compareReplays compares the replays after a step.
func (m *model) compareReplays(step dispatch.ReplayStep, limit int) {
	var left []*modelReplay
	var sum dispatch.ReplayStep
	for _, r := range m.replays {
		before := r.Replay
		r.Replay = m.readReplay(r.ID)
		sum.Admitted += int(r.Admitted - before.Admitted)
		sum.Skipped += int(r.Skipped - before.Skipped)
		m.check(r.Admitted+r.Skipped <= r.Matched, "a replay of %d has admitted %d and skipped %d", r.Matched, r.Admitted, r.Skipped)
		if r.Status != replay.Finished {
			m.equal(r.Status, before.Status, "status of a replay that has not finished")
			m.check(limit < plenty || r.Status != replay.Running, "a replay has not finished by a step without a limit")
			left = append(left, r)
			continue
		}
		sum.Finished = append(sum.Finished, r.Replay)
		m.over[r.ID] = m.clock
		m.equal([]any{before.Status, r.Admitted + r.Skipped}, []any{replay.Running, r.Matched}, "status of a replay before it has finished, and what it has admitted and skipped")
		r.Status = replay.Running // so that nothing is left that it would send
		for d := range r.members {
			m.check(!m.sends(r, d), "a replay has finished, and %s was not sent again", d.id)
		}
	}
	m.replays = left
	m.equal([]int{step.Admitted, step.Skipped, len(step.Finished), len(step.Notices)}, []int{sum.Admitted, sum.Skipped, len(sum.Finished), len(sum.Finished)}, "admitted, skipped, finished and notices of a step, by its replays")
}

// changeReplay pauses a replay, lets it go on, or cancels it.
func (m *model) changeReplay() {
	if len(m.replays) == 0 {
		return
	}
	at := m.rand.IntN(len(m.replays))
	r := m.replays[at]
	m.setReplay(r.ID, []replay.Status{replay.Paused, replay.Running, replay.Running, replay.Cancelled}[m.rand.IntN(4)])
	if r.Replay = m.readReplay(r.ID); r.Status == replay.Cancelled {
		m.replays = append(m.replays[:at:at], m.replays[at+1:]...)
		m.over[r.ID] = m.clock
	}
}

// endReplays lets all replays come to their end.
func (m *model) endReplays() {
	for _, r := range m.replays {
		m.setReplay(r.ID, replay.Running)
		r.Status = replay.Running
	}
	m.stepReplaysBy(plenty)
	m.equal(len(m.replays), 0, "replays left")
}
