package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
)

func pruneReplays(w *world) {
	finished := w.replay(replay.Filter{}).ID
	w.step(plenty)
	w.equal(w.readReplay(finished).Status, replay.Finished, "status of a replay of nothing")
	cancelled, paused, running := w.replay(replay.Filter{}).ID, w.replay(replay.Filter{}).ID, w.replay(replay.Filter{Status: sender.StatusDelivered}).ID
	w.pauseReplay(paused)
	w.Advance(2 * time.Hour)
	w.setReplay(cancelled, replay.Cancelled)
	w.Advance(9 * time.Hour)

	w.equal(w.prune(ages{delivered: time.Hour, dead: time.Hour, notices: time.Hour, objects: time.Hour}), dispatch.Pruned{}, "pruned by times that are not the events'")
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{Replays: 1}, "pruned 11 h after a replay was finished, and 9 h after another was cancelled")
	w.remain(running, paused, cancelled)
	w.noReplay(finished)
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{Replays: 1}, "pruned 11 h after a replay was cancelled")
	w.noReplay(cancelled)
	w.remain(running, paused)
	later := w.replay(replay.Filter{}).ID
	w.remain(later, running, paused)
	page, err := w.Store.Replays(w.ctx, replay.Query{After: running, Limit: plenty})
	w.noError(err, "listing replays")
	w.equal([]any{len(page), page[0].ID}, []any{1, paused}, "replays after one, when some before it were pruned")
	w.Advance(1000 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{}, "pruned when all replays are running or paused")

	for _, id := range []string{later, running, paused} {
		w.setReplay(id, replay.Cancelled)
	}
	for range 6 {
		w.setReplay(w.replay(replay.Filter{}).ID, replay.Cancelled)
	}
	w.Advance(11 * time.Hour)
	sum, batches := w.pruneBy(w.pruneParams(all(10*time.Hour), 2))
	w.equal(sum, dispatch.Pruned{Replays: 9}, "pruned by batches of 2")
	w.check(batches >= 5, "9 replays were pruned by %d batches of 2", batches)
	w.remain()
}

// noReplay ends the test unless an id is that of no replay.
func (w *world) noReplay(id string) {
	w.Helper()
	_, err := w.Store.Replay(w.ctx, id)
	w.errorIs(err, sender.ErrNotFound, "reading a replay that was pruned")
	_, err = w.Store.SetReplayStatus(w.ctx, id, replay.Cancelled)
	w.errorIs(err, sender.ErrNotFound, "cancelling a replay that was pruned")
	_, err = w.Store.Replays(w.ctx, replay.Query{After: id, Limit: 1})
	w.errorIs(err, sender.ErrNotFound, "listing after a replay that was pruned")
}

// remain ends the test unless these are the replays, the newest first.
func (w *world) remain(ids ...string) {
	w.Helper()
	var got []string
	for _, r := range w.allReplays() {
		got = append(got, r.ID)
	}
	w.equal(got, ids, "replays")
}
