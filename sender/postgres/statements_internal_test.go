package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
)

// parameterStatements are the statements that have parameters alone, by name.
func parameterStatements() map[string]string {
	all := map[string]string{
		"txSettings": txSettings, "expanding": expanding, "beExpander": beExpander, "lockHeads": lockHeads, "lockTurns": lockTurns, "updateTurns": updateTurns,
		"selectTargets": selectTargets, "selectSkippedOf": selectSkippedOf, "disable": disableSubscription, "insertNotice": insertNotice,
		"deletePendingKeys": deletePendingKeys, "deleteWaitingKeys": deleteWaitingKeys,
		"lockWoken": lockWoken, "deleteWakes": deleteWakes, "selectIdle": selectIdle.Alone, "selectIdle shared": selectIdle.Shared, "nextDue": selectNextDue.Alone, "nextDue shared": selectNextDue.Shared,
		"selectDue": selectDue.Alone, "selectDue shared": selectDue.Shared, "deleteLost": deleteLost, "selectLeasesEnd": selectLeasesEnd, "selectCandidates": selectCandidates,
		"selectOldPending": selectOldPending, "selectLeastWaiting": selectLeastWaiting, "selectPending": selectPending, "removePending": removePending, "leaseWaiting": leaseWaiting,
		"deleteRedacted": deleteRedacted, "selectUnexpanded": selectUnexpanded, "selectFew": selectFew, "selectFewTargets": selectFewTargets, "lockFeedHead": lockFeedHead.Alone, "lockFeedHead shared": lockFeedHead.Shared, "selectArrived": selectArrived, "selectFiltered": selectFiltered, "selectBehind": selectBehind, "selectPayloads": selectPayloads,
		"updateFeedHead": updateFeedHead, "deleteOutbox": deleteOutbox, "updateOutbox": updateOutbox, "selectObjects": selectObjects,
		"selectMatches": selectMatches, "selectAllMatches": selectAllMatches, "selectAddressed": selectAddressed, "selectFilters": selectFilters,
		"selectUnexpandedSkips": selectUnexpandedSkips, "selectUnseen": selectUnseen, "isUnexpandedSkip": isUnexpandedSkip, "selectKey": selectKey, "selectVersion": selectVersion,
		"insertReplay": insertReplay, "countUnfinished": countUnfinished, "selectReplay": selectReplay, "selectReplays": selectReplays, "selectReplaysOf": selectReplaysOf,
		"updateReplay": updateReplay, "lastEnded": lastEnded, "lastPosition": lastPosition, "selectReplayDead": selectReplayDead,
		"selectReplayDeadOf": selectReplayDeadOf, "selectReplayDelivered": selectReplayDelivered, "deleteLate": deleteLate,
		"selectReplayDeliveredOf": selectReplayDeliveredOf, "lockEnded": lockEnded,
		"deleteOrphanedLate": deleteOrphanedLate, "lockReplays": lockReplays, "selectLocked": selectLocked,
		"moveReplays": moveReplays, "takeDead": takeDead, "stillDelivered": stillDelivered,
		"selectSweepable": selectSweepable, "lockFreeHeads": lockFreeHeads, "selectGonePending": selectGonePending, "selectGoneWaiting": selectGoneWaiting,
		"deleteGoneLeases": deleteGoneLeases, "selectFirstLeaseEnd": selectFirstLeaseEnd, "markSwept": markSwept, "deletePatterns": deletePatterns,
		"selectFreeSubscriptions": selectFreeSubscriptions, "deleteSkipped": deleteSkipped, "lowerSkipped": lowerSkipped, "clearSnapshotMarks": clearSnapshotMarks,
		"forgetSubscribers": forgetSubscribers, "selectOldSubscriptions": selectOldSubscriptions, "lockEndedHeads": lockEndedHeads,
		"deleteSubscriptions": deleteSubscriptions, "deleteHeads": deleteHeads, "deleteAllSkipped": deleteAllSkipped, "deleteTurns": deleteTurns, "selectOldEnds": selectOldEnds, "deleteOldEnds": deleteOldEnds, "deleteAttempts": deleteAttempts,
		"holdHeads": holdHeads, "fewerDead": fewerDead, "selectOldRecords": selectOldRecords, "selectStillOld": selectStillOld,
		"selectOldEvents": selectOldEvents, "selectLiveEvents": selectLiveEvents, "deleteKeys": deleteKeys, "deleteFeed": deleteFeed, "deleteEvents": deleteEvents,
		"selectOldNotices": selectOldNotices, "deleteNotices": deleteNotices, "selectOldReplays": selectOldReplays, "deleteReplays": deleteReplays, "selectOldRollups": selectOldRollups, "deleteRollups": deleteRollups, "deleteHourRollups": deleteHourRollups, "selectOldHours": selectOldHours, "deleteHours": deleteHours,
		"selectEventRange": selectEventRange, "selectEventsOf": selectEventsOf, "removeBodies": removeBodies, "unaddress": unaddress,
		"selectPositions": selectPositions, "selectLiveOf": selectLiveOf, "redactLeases": redactLeases, "redactAttempts": redactAttempts,
	}
	for name, s := range map[string]rowwise{
		"lockHeadsAt": lockHeadsAt, "lockFew": lockFew, "updateHeads": updateHeads, "updateWholeHeads": updateWholeHeads, "updateHeadsAndLines": updateHeadsAndLines, "insertLines": insertLines, "insertAttempts": insertAttempts, "insertWaiting": insertWaiting, "insertEnded": insertEnded, "insertLate": insertLate, "takeLeases": takeLeases, "insertPending": insertPending, "insertPendingSince": insertPendingSince, "insertLeases": insertLeases, "insertFeed": insertFeed, "insertSuccesses": insertSuccesses,
	} {
		all[name], all[name+" of one"] = s.many, s.one
	}
	for name, text := range map[string]string{
		"selectPosition": selectPosition, "selectDeliveries": selectDeliveries, "selectAttempts": selectAttempts, "selectTellingAttempts": selectTellingAttempts, "selectBody": selectBody,
		"selectEventInfos": selectEventInfos, "selectAnswered": selectAnswered, "selectOwner": selectOwner, "selectFacts": selectFacts,
		"pendingBefore": pendingBefore, "pendingDue": pendingDue, "waitingDue": waitingDue, "resumedBefore": resumedBefore,
		"selectCounts": selectCounts, "selectBacklog": selectBacklog, "selectBesides": selectBesides, "selectOldestDue": selectOldestDue,
		"selectEvents": selectEvents, "selectEvent": selectEvent,
		"selectPositionBefore": selectPositionBefore, "selectEventBefore": selectEventBefore, "countLate": countLate, "selectBelated": selectBelated,
		"restartLease": restartLease, "restartWaiting": restartWaiting, "deletePending": deletePending, "deleteEnd": deleteEnd, "lastNumber": lastNumber,
		"upsertRollups": upsertRollups, "selectRollups": selectRollups, "selectHourRollups": selectHourRollups, "selectUnmerged": selectUnmerged, "insertHourRollup": insertHourRollup, "upsertHours": upsertHours, "selectHours": selectHours, "selectNumbersOf": selectNumbersOf,
		"selectDeadGroups": selectDeadGroups, "selectDeadGroupsOf": selectDeadGroupsOf, "selectDeadOf": selectDeadOf, "selectUnread": selectUnread,
		"selectUnreadOf": selectUnreadOf, "acknowledgeNotices": acknowledgeNotices, "selectKinds": selectKinds, "selectFailing": selectFailing, "selectNamed": selectNamed,
	} {
		all[name] = text
	}
	for name, text := range map[string]string{
		"selectLines": selectLines, "selectLinesOf": selectLinesOf, "selectNames": selectNames, "selectOvertaken": selectOvertaken, "deleteOldDead": deleteOldDead,
		"precede": precede, "raiseRanks": raiseRanks, "holdsFresh": holdsFresh, "changeLines": changeLines, "freeLines": freeLines, "haltLines": haltLines, "clearHalted": clearHalted, "stopLines": stopLines, "endLines": endLines,
		"displacePending": displacePending, "displaceWaiting": displaceWaiting, "restartBehind": restartBehind, "deleteLines": deleteLines, "takeFirsts": takeFirsts, "leaveLines": leaveLines, "leaveBefore": leaveBefore, "selectAgain": selectAgain,
		"selectDeadInLines": selectDeadInLines, "selectExpiring": selectExpiring, "selectHeldBack": selectHeldBack, "waitedFor": waitedFor, "holdsBack": holdsBack, "selectObjectsAt": selectObjectsAt, "selectGoneBehind": selectGoneBehind,
	} {
		all[name] = text
	}
	for _, src := range sources("") {
		firsts, _ := src.firsts(&scope{})
		all["firsts of "+src.table+src.likely] = firsts
	}
	for shape, n := range publishTexts() {
		all[string(rune('a'+len(all)))+shapeName(shape)] = n.text
	}
	return all
}

// parameterStatements are prepared by their texts alone: PostgreSQL must be able to infer the
// types of all parameters.
func TestStatementsCanBePrepared(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	c, err := newCore("New", pool, &Config{Schema: "prepared_statements"})
	require.NoError(t, err)
	require.NoError(t, c.Migrate(t.Context()))
	t.Cleanup(func() { _, _ = pool.Exec(context.Background(), `DROP SCHEMA prepared_statements CASCADE`) })
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	all := parameterStatements()
	for name, text := range all {
		_, err := conn.Conn().Prepare(t.Context(), name, c.text(text))
		require.NoError(t, err, "%s: %s", name, c.text(text))
	}
}

func shapeName(p publishShape) string {
	name := "publish"
	for of, is := range map[string]bool{"given": p.given, "keyed": p.keyed, "subscriber": p.subscriber, "subscription": p.subscription} {
		if is {
			name += " " + of
		}
	}
	return name
}
