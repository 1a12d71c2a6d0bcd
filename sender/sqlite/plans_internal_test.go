package sqlite

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// step is a step of a plan that would be too slow on a growing table, and a reason why
// it is not.
type step struct{ query, detail, why string }

const (
	oneRow   = "reads one end of the index, or stops at the first row"
	limited  = "is in the order of the index, so it stops at the limit"
	inFlight = "as many as there are attempts in flight"
	ofCall   = "as many as the call has found"
	ofEach   = "a bounded number of each subscription that it names"
	ending   = "as many as are at their end, and not swept yet"
)

var excepted = []step{
	{nextReplay, "SCAN surehook_replays USING COVERING INDEX surehook_replays_running", oneRow},
	{selectLateReplays, "SCAN surehook_replays USING INDEX surehook_replays_delivered", "as many as are running or paused"},
	{lastEnded, "SEARCH surehook_ended", oneRow},
	{countAhead, "SCAN (subquery-1)", limited},
	{countUnfinished, "SCAN (subquery-1)", limited},
	{selectReplayDead, "SCAN x", limited},
	{selectReplayDeadOf, "SCAN k", limited},
	{selectReplayDeadOf, "USE TEMP B-TREE FOR ORDER BY", ofEach},
	{selectReplayAged, "SCAN x", limited},
	{selectReplayAgedOf, "SCAN x", limited},
	{selectReplayAgedOf, "USE TEMP B-TREE FOR ORDER BY", ofEach},
	{selectReplayDelivered, "SCAN d", limited},
	{selectReplayDeliveredOf, "SCAN d", limited},
	{selectReplayDeliveredOf, "USE TEMP B-TREE FOR DISTINCT", ofEach},
	{deleteReplayLate, "SEARCH surehook_replay_late USING PRIMARY KEY (replay=?)", "at the end of a replay: as many as became delivered while it ran"},
	{selectFirsts, "SCAN k", ofCall},
	{selectAgain, "SEARCH surehook_lines USING COVERING INDEX surehook_lines_again (subscription=?)", oneRow},
	{selectLines, "SCAN k", ofCall},
	{selectLines, "SCAN l", ofCall},
	{selectAnyUnexpanded, "SCAN x", "surehook_expanded has one row"},
	{selectAnyUnexpanded, "SEARCH surehook_events", oneRow},
	{selectUnexpanded, "SCAN u", "large events, and a bounded number that wait for them"},
	{selectFirstKey, "SEARCH surehook_secrets USING COVERING INDEX surehook_secrets_key", oneRow},
	{selectEnding, "SCAN s USING INDEX surehook_subscriptions_ending", ending},
	{selectSkippedOf, "SCAN s", ending},
	{selectSkippedOf, "SEARCH x USING PRIMARY KEY (subscription=?)", inFlight},
	{clearSkipped, "SEARCH surehook_left USING PRIMARY KEY (subscription=?)", "as many as there were resumes that are not swept"},
	{clearSkipped, "SEARCH l USING PRIMARY KEY (subscription=?)", inFlight},
	{lowerSkipped, "SEARCH surehook_left USING PRIMARY KEY (subscription=?)", "as many as there were resumes that are not swept"},
	{deletePattern, "SEARCH surehook_patterns USING INDEX surehook_patterns_of (subscription=?)", "as many as it asks for"},
	{selectForgotten, "SCAN o USING COVERING INDEX surehook_subscribers_deleted", ending},
	{selectFirstPending, "SEARCH f USING PRIMARY KEY (subscription=?)", limited},
	{selectPresent, "SCAN surehook_processes", "as many as there are processes"},
	{selectLeasesEnd, "SEARCH surehook_leases USING PRIMARY KEY (subscription=?)", inFlight},
	{selectLeastUntil, "SEARCH surehook_leases USING PRIMARY KEY (subscription=?)", inFlight},
	{selectLost, "SEARCH l USING PRIMARY KEY (subscription=?)", inFlight},
	{selectLost, "USE TEMP B-TREE FOR ORDER BY", inFlight},
	{selectCounts, "SEARCH surehook_events", oneRow},
	{selectUnmerged, "SEARCH surehook_hour_rollups", oneRow},
	{selectLanes, "SCAN surehook_heads USING INDEX surehook_heads_live", "as many as have something live, when it is counted, and once a minute"},
	{selectLanes, "USE TEMP B-TREE FOR GROUP BY", "three lanes"},
	{selectDeadEnds, "SEARCH surehook_ended USING INDEX surehook_ended_order (status=?)", limited},
	{selectDeadEnds, "SCAN x", limited},
	{selectDeadEndsOf, "SCAN x", limited},
	{selectUnread, "SCAN surehook_notices USING INDEX surehook_notices_unread", limited},
	{acknowledgeNotices, "SCAN surehook_notices USING INDEX surehook_notices_unread", "as many as nobody has acknowledged, when somebody does"},
	{selectOldestDue, "SEARCH h", "as many as the limit says"},
	{selectOldestDue, "SEARCH l USING PRIMARY KEY (subscription=?)", inFlight},
	{pendingBefore, "SCAN (subquery-1)", "as many as the limit says"},
	{pendingDue, "SCAN (subquery-1)", "as many as the limit says"},
	{waitingDue, "SCAN (subquery-1)", "as many as the limit says"},
	{resumedBefore, "SCAN (subquery-1)", "as many as the limit says"},
	{selectGoneLeases, "SEARCH x USING PRIMARY KEY (subscription=?)", inFlight},
	{lastEvent, "SEARCH surehook_events", oneRow},
	{selectStillOld, "USE TEMP B-TREE FOR GROUP BY", ofCall},
	{selectOldEvents, "SEARCH x USING PRIMARY KEY (event=?)", oneRow},
	{selectLiveEvents[0], "SCAN h USING INDEX surehook_heads_live", "as many as have something live, once in a batch that has found old events"},
	{selectLiveEvents[1], "SCAN h USING INDEX surehook_heads_live", "as many as have something live, once in a batch that has found old events"},
	{selectLiveEvents[2], "SCAN h USING INDEX surehook_heads_live", "as many as have something live, once in a batch that has found old events"},
	{selectOldSubscriptions, "SEARCH x USING COVERING INDEX surehook_attempts_delivered (subscription=?)", oneRow},
	{selectOldSubscriptions, "SEARCH x USING COVERING INDEX sqlite_autoindex_surehook_ended_1 (subscription=?)", oneRow},
	{deleteSubscriptions, "SEARCH x USING COVERING INDEX surehook_attempts_delivered (subscription=?)", oneRow},
	{deleteSubscriptions, "SEARCH x USING COVERING INDEX sqlite_autoindex_surehook_ended_1 (subscription=?)", oneRow},
	{deleteSkips, "SEARCH surehook_left USING PRIMARY KEY (subscription=?)", "as many as there were resumes that are not swept"},
	{deleteLines, "SEARCH surehook_lines USING PRIMARY KEY (subscription=? AND event>?)", "as many as there are dead letters in it, at the end of the subscription"},
	{selectBuried, "SCAN surehook_subscribers USING COVERING INDEX surehook_subscribers_buried", limited},
	{deleteKeys, "SEARCH surehook_keys USING INDEX surehook_keys_event (event=?)", ofCall},
	{selectExposing, "SEARCH surehook_attempts USING PRIMARY KEY (event=?)", ofCall},
	{selectLiveOf, "SCAN h USING INDEX surehook_heads_live", "as many as have something live, once in a batch that has found events to redact"},
}

// pages are the statements of a list, with the exceptions of each.
func pages() (queries []string, all []step) {
	add := func(query string, steps ...step) {
		queries = append(queries, query)
		for _, s := range steps {
			s.query = query
			all = append(all, s)
		}
	}
	scopes := map[scope][]step{
		{}:                               {{detail: "SCAN s", why: "as many as there are subscriptions, each with one row"}},
		{subscriber: 1}:                  nil, // as many as the owner has
		{subscription: 1}:                nil,
		{subscription: 1, subscriber: 1}: nil,
	}
	for _, status := range []sender.Status{"", sender.StatusPending, sender.StatusAwaitingRetry, sender.StatusHeld, sender.StatusCancelled, sender.StatusSuperseded} {
		for _, of := range sources(status) {
			for sc, steps := range scopes {
				if of.of != "" || sc.named() {
					query, _ := of.firsts(sc, dispatch.DeliveryKey{})
					if strings.Contains(of.of, dropped) && len(steps) > 0 {
						steps = []step{{detail: "SCAN h", why: steps[0].why}}
					}
					add(query, steps...)
				}
			}
			one, _ := of.next(1, scope{}, dispatch.DeliveryKey{}, 1)
			add(one)
			if of.of != "" {
				continue
			}
			var steps []step
			switch of.table {
			case succeeded.table:
				steps = []step{{detail: "SEARCH x USING PRIMARY KEY (event>? AND event<?)", why: limited}}
			case "surehook_leases":
				steps = []step{{detail: "SCAN x", why: inFlight}, {detail: "USE TEMP B-TREE FOR ORDER BY", why: inFlight}}
			}
			query, _ := of.next(0, scope{}, dispatch.DeliveryKey{}, 1)
			add(query, steps...)
		}
	}
	return queries, all
}

var (
	// A statement may read to the end its call's arguments, the deliveries in
	// flight, and tables of one row or of few.
	small = regexp.MustCompile(`^SCAN (json_each|j|v|CONSTANT ROW|\d+-ROW VALUES CLAUSE|surehook_(counts|expanded|unexpanded|registry|floor|leases))\b`)
	// A key has several columns, and only the first is given.
	prefix = regexp.MustCompile(`^SEARCH .*(PRIMARY KEY|surehook_\w+) \((lane|subscription|event|status|pattern|type|scope)[=<>]\?\)`)
)

func slow(detail string) bool {
	switch {
	case strings.HasPrefix(detail, "SCAN "):
		return !small.MatchString(detail)
	case strings.HasPrefix(detail, "SEARCH "):
		return !strings.Contains(detail, "(") || strings.Contains(detail, "AUTOMATIC") || prefix.MatchString(detail)
	}
	return strings.Contains(detail, "TEMP B-TREE") && !strings.Contains(detail, "LAST TERM")
}

// The cost of a statement must not grow with the tables.
func TestPlans(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	defer db.Close()
	s, err := New(db, nil)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))

	queries := append(hot(), selectVersion, selectSubscriptionNo,
		selectSkipped, selectEnding, selectSkippedOf, selectGonePending, selectGoneWaiting, selectGoneLeases, selectGoneBehind, deletePendingOne, deletePendingOf, deleteWaitingOf, insertEnds,
		clearSkipped, lowerSkipped, markSwept, deletePattern, selectForgotten, restartLease, restartWaiting, deleteEnd, lastNumber,
		insertReplay, countUnfinished, selectReplay, selectSubscriptionsOf, selectReplays, selectReplaysOf, updateReplay, nextReplay, selectReplayDeliveredOf, selectReplayAged, selectReplayAgedOf, deleteReplayLate, lastEnded, selectLateReplays,
		setStatus, closeHead, oldestHeld, insertNotice,
		raiseKeyring, deleteSecrets, insertSecret, selectSealedWith, updateSealed, selectFirstKey, selectNextKey, selectDelivery, selectLive, selectEnd, countAttempts, selectLastAnswer, selectAttempts, selectTellingAttempts,
		selectEventInfos, selectOwner, selectEvents, selectEvent, selectSubscriptions+` AND s.no > ? ORDER BY s.no LIMIT ?`,
		selectCounts, selectStatus, selectOldestDue, selectRollup, selectRollups, selectHourRollups, selectUnmerged, deleteHourRollups,
		selectFacts, selectLease, pendingBefore, pendingDue, waitingDue, resumedBefore, waitingOne, pendingOne)
	queries = append(queries, selectOldEnds, deleteOldEnds, deleteAttempts, selectOldRecords, selectStillOld, selectOldEvents,
		deleteKeys, deleteEvents, selectOldNotices, deleteNotices, selectOldReplays, deleteReplays, selectOldRollups, deleteRollups,
		selectEventFrom, selectEventsOf, removeBodies, selectExposing, redactAttempts, selectLiveOf, selectNotInFlight, lastEvent)
	queries = append(queries, selectLiveEvents...)
	queries = append(queries, upsertHour, selectHours, selectNumberOf, selectOldHours, deleteHour, selectLanes, selectNamed, selectFailing,
		selectDeadEnds, selectDeadEndsOf, selectDeadOwner, selectWithDead, selectUnread, selectUnreadOf, acknowledgeNotices, selectKinds)
	queries = append(queries, selectOldSubscriptions, deleteSubscriptions, deleteHeads, deleteSkips, selectBuried, deleteTurns, markBuried,
		selectOvertaken, selectOut, leaveLineOf, deleteDead, deleteLines, restartBehind, selectDeadInLines, freeLine, selectHeldBack, removeKeptOf, waitedFor, holdsBack,
		markForgettable, liftFloor, selectForgettable, forgetObject, deleteForgettable, selectLeasedUnder)
	expected := slices.Clone(excepted)
	lists, exceptions := pages()
	queries, expected = append(queries, lists...), append(expected, exceptions...)
	for _, c := range pendingNext.chunks {
		expected = append(expected, step{c.query, "SEARCH surehook_lines USING COVERING INDEX surehook_lines_again (subscription=?)", oneRow})
	}
	met := map[step]bool{}
	for _, query := range queries {
		for _, detail := range planOf(t, db, query) {
			i := slices.IndexFunc(expected, func(e step) bool { return e.query == query && plain(e.detail) == plain(detail) })
			if i >= 0 {
				met[expected[i]] = true
			} else if slow(detail) {
				t.Errorf("%q in the plan of\n%s", detail, query)
			}
		}
	}
	ofOne := strings.Join(planOf(t, db, selectSubscriptions+` AND s.subscriber = ? AND s.no > ? ORDER BY s.no LIMIT ?`), "\n")
	require.Contains(t, ofOne, "USING INDEX surehook_subscriptions_listed (subscriber=? AND no>?)", "deleted ones are not looked at")
	for _, e := range expected {
		if !met[e] {
			t.Errorf("%q, which %s, is not in the plan any more of\n%s", e.detail, e.why, e.query)
		}
	}
}

// plain removes the parts of a plan's text that differ between releases of SQLite.
func plain(detail string) string { return strings.ReplaceAll(detail, "COVERING ", "") }

var parameter = regexp.MustCompile(`\?(\d*)`)

func planOf(t *testing.T, db *sql.DB, query string) (details []string) {
	t.Helper()
	var args []any
	numbered := 0
	for _, m := range parameter.FindAllStringSubmatch(query, -1) {
		if m[1] == "" {
			args = append(args, 1)
		} else {
			numbered = max(numbered, int(m[1][0]-'0'))
		}
	}
	for range numbered {
		args = append(args, 1)
	}
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	require.NoError(t, err, query)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		details = append(details, strings.TrimSuffix(detail, ":"))
	}
	require.NoError(t, rows.Err())
	return details
}
