package history

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

func TestExplain(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	timeout := sender.Attempt{Number: 1, StartedAt: ago(time.Minute), Duration: 10 * time.Second, Class: sender.ClassTimeout, Error: "no whole answer within the attempt's time"}
	reset := sender.Attempt{Number: 3, StartedAt: ago(time.Second), Class: sender.ClassReset, Error: "the connection was closed before the answer was whole"}
	refused := sender.Attempt{Number: 2, StartedAt: ago(30 * time.Second), Class: sender.ClassConnect}
	ok := sender.Attempt{Number: 2, StartedAt: ago(20 * time.Second), Duration: time.Second, StatusCode: 204}
	proven := sender.Health{Lane: sender.LaneProven}
	due := func(since time.Duration) sender.Delivery {
		return sender.Delivery{Status: sender.StatusPending, NextAttemptAt: ago(since)}
	}
	for name, c := range map[string]struct {
		facts    Facts
		reason   Reason
		sentence string
		until    time.Time
	}{
		"delivered": {
			facts:    Facts{Status: sender.SubscriptionActive, Delivery: sender.Delivery{Status: sender.StatusDelivered, Attempts: []sender.Attempt{timeout, ok}}},
			reason:   WhyDelivered,
			sentence: "Delivered at 2026-11-20T11:59:41Z by attempt 2, which was answered with 204.",
		},
		"delivered, and its subscription is deleted": {
			facts:    Facts{Delivery: sender.Delivery{Status: sender.StatusDelivered, Attempts: []sender.Attempt{ok}}},
			reason:   WhyDelivered,
			sentence: "Delivered at 2026-11-20T11:59:41Z by attempt 2, which was answered with 204.",
		},
		"in flight": {
			facts: Facts{Status: sender.SubscriptionActive, Leased: ago(3 * time.Second), Lease: now.Add(57 * time.Second),
				Delivery: sender.Delivery{Status: sender.StatusAwaitingRetry, InFlight: true, AttemptCount: 1}},
			reason: WhyInFlight, until: now.Add(57 * time.Second),
			sentence: "Attempt 2 has been in flight since 2026-11-20T11:59:57Z.",
		},
		"in flight, while it is paused": {
			facts:  Facts{Status: sender.SubscriptionPaused, Leased: now, Lease: now.Add(time.Minute), Delivery: sender.Delivery{Status: sender.StatusHeld, InFlight: true}},
			reason: WhyInFlight, until: now.Add(time.Minute),
			sentence: "Attempt 1 has been in flight since 2026-11-20T12:00:00Z; if it fails the delivery is held, because its subscription is paused.",
		},
		"in flight, while it was deleted": {
			facts:  Facts{Leased: now, Lease: now.Add(time.Minute), Delivery: sender.Delivery{Status: sender.StatusCancelled, InFlight: true}},
			reason: WhyInFlight, until: now.Add(time.Minute),
			sentence: "Attempt 1 has been in flight since 2026-11-20T12:00:00Z; its subscription was deleted, so it is cancelled unless this attempt succeeds.",
		},
		"in flight, while it was resumed without it": {
			facts:  Facts{Status: sender.SubscriptionActive, Leased: now, Lease: now.Add(time.Minute), Delivery: sender.Delivery{Status: sender.StatusCancelled, InFlight: true}},
			reason: WhyInFlight, until: now.Add(time.Minute),
			sentence: "Attempt 1 has been in flight since 2026-11-20T12:00:00Z; its subscription was resumed without it, so it is cancelled unless this attempt succeeds.",
		},
		"in flight, a single time more": {
			facts: Facts{Status: sender.SubscriptionActive, Single: true, Leased: now, Lease: now.Add(time.Minute),
				Delivery: sender.Delivery{Status: sender.StatusAwaitingRetry, InFlight: true, AttemptCount: 2}},
			reason: WhyInFlight, until: now.Add(time.Minute),
			sentence: "Attempt 3 has been in flight since 2026-11-20T12:00:00Z; it was delivered before, and stays so whatever comes of it.",
		},
		"due, the first of a proven endpoint": {
			facts:    Facts{Status: sender.SubscriptionActive, Health: proven, Delivery: due(time.Second)},
			reason:   WhyDue,
			sentence: "Due since 2026-11-20T11:59:59Z, and waiting for its turn, as the first of its subscription.",
		},
		"due, of a new endpoint": {
			facts:    Facts{Status: sender.SubscriptionClosing, Ahead: 1, Delivery: due(time.Second)},
			reason:   WhyDue,
			sentence: "Due since 2026-11-20T11:59:59Z, and waiting for its turn, behind 1 other of its subscription. The endpoint is new: it has few places until it has answered.",
		},
		"due, of a slow endpoint": {
			facts:    Facts{Status: sender.SubscriptionActive, Health: sender.Health{Lane: sender.LaneProbation}, Ahead: MaxAhead, Delivery: due(time.Second)},
			reason:   WhyDue,
			sentence: "Due since 2026-11-20T11:59:59Z, and waiting for its turn, behind 1000 others of its subscription. The endpoint answers slowly, so it has few places.",
		},
		"due, of a failing endpoint": {
			facts: Facts{Status: sender.SubscriptionActive, Health: sender.Health{Lane: sender.LaneProbation, Streak: 7, FailingSince: ago(time.Hour)}, Ahead: MaxAhead + 1,
				Delivery: due(time.Second)},
			reason:   WhyDue,
			sentence: "Due since 2026-11-20T11:59:59Z, and waiting for its turn, behind more than 1,000 others of its subscription. The endpoint is failing (7 failures in a row since 2026-11-20T11:00:00Z), so it has few places.",
		},
		"due, and as many are in flight as may be": {
			facts:    Facts{Status: sender.SubscriptionActive, Health: proven, Settings: sender.Settings{MaxInFlight: 2}, InFlight: 2, Delivery: due(time.Second)},
			reason:   WhyDue,
			sentence: "Due since 2026-11-20T11:59:59Z, and waiting for its turn, as the first of its subscription. The subscription has 2 attempts in flight, as many as it may have.",
		},
		"awaiting a retry": {
			facts: Facts{Status: sender.SubscriptionActive, Tries: 2,
				Delivery: sender.Delivery{Status: sender.StatusAwaitingRetry, AttemptCount: 1, Attempts: []sender.Attempt{timeout}, NextAttemptAt: now.Add(time.Minute)}},
			reason: WhyAwaitingRetry, until: now.Add(time.Minute),
			sentence: "Attempt 1 failed at 2026-11-20T11:59:10Z: timeout, no whole answer within the attempt's time. Attempt 2, the 3rd of its schedule, is due at 2026-11-20T12:01:00Z.",
		},
		"awaiting a retry, as its answer asked": {
			facts: Facts{Status: sender.SubscriptionActive, Tries: 1, Delivery: sender.Delivery{
				Status: sender.StatusAwaitingRetry, AttemptCount: 1, NextAttemptAt: now.Add(time.Hour),
				Attempts: []sender.Attempt{{Number: 1, StartedAt: ago(time.Second), Class: sender.ClassStatus, StatusCode: 503, Error: "answered 503", Headers: "\nServer: a\nretry-after: 3600\n"}},
			}},
			reason: WhyAwaitingRetry, until: now.Add(time.Hour),
			sentence: "Attempt 1 failed at 2026-11-20T11:59:59Z: status, answered 503. Its answer asked for a pause of 1h0m0s (Retry-After), to which the policy lengthens a shorter delay, within its bounds. Attempt 2, the 2nd of its schedule, is due at 2026-11-20T13:00:00Z.",
		},
		"awaiting a retry, asked for nothing": {
			facts: Facts{Status: sender.SubscriptionActive, Tries: 1, Delivery: sender.Delivery{
				Status: sender.StatusAwaitingRetry, AttemptCount: 1, NextAttemptAt: now.Add(time.Minute),
				Attempts: []sender.Attempt{{Number: 1, StartedAt: ago(time.Second), Class: sender.ClassStatus, StatusCode: 503, Error: "answered 503", Headers: "Retry-After: 3600\n\nRetry-After: soon\n"}},
			}},
			reason: WhyAwaitingRetry, until: now.Add(time.Minute),
			sentence: "Attempt 1 failed at 2026-11-20T11:59:59Z: status, answered 503. Attempt 2, the 2nd of its schedule, is due at 2026-11-20T12:01:00Z.",
		},
		"put off since the last attempt": {
			facts: Facts{Status: sender.SubscriptionActive, Tries: 1, Delivery: sender.Delivery{
				Status: sender.StatusAwaitingRetry, AttemptCount: 1, NextAttemptAt: now.Add(time.Minute),
				Attempts: []sender.Attempt{{Number: 1, StartedAt: ago(time.Hour), Class: sender.ClassConnect, NextAttemptAt: ago(59 * time.Minute)}},
			}},
			reason: WhyAwaitingRetry, until: now.Add(time.Minute),
			sentence: "Attempt 1 failed at 2026-11-20T11:00:00Z: connect. Since then a process that had it could not send it, and has put it off until 2026-11-20T12:01:00Z. The log of that process says why.",
		},
		"awaiting a repetition": {
			facts: Facts{Status: sender.SubscriptionActive, Tries: 1, Spared: true,
				Delivery: sender.Delivery{Status: sender.StatusAwaitingRetry, AttemptCount: 3, Attempts: []sender.Attempt{timeout, refused, reset}, NextAttemptAt: now.Add(time.Second)}},
			reason: WhyAwaitingRetry, until: now.Add(time.Second),
			sentence: "Attempt 3 failed at 2026-11-20T11:59:59Z: reset, the connection was closed before the answer was whole. It does not count, because most likely the server has not processed the request. Attempt 4 is made in its place, and is due at 2026-11-20T12:00:01Z.",
		},
		"given back before its first attempt": {
			facts:  Facts{Status: sender.SubscriptionActive, Delivery: sender.Delivery{Status: sender.StatusPending, NextAttemptAt: now.Add(time.Minute)}},
			reason: WhyAwaitingRetry, until: now.Add(time.Minute),
			sentence: "Not attempted yet: a process that had it could not send it, and has put it off until 2026-11-20T12:01:00Z. The log of that process says why.",
		},
		"given back, in a payload version that may be why": {
			facts: Facts{Status: sender.SubscriptionActive, published: "2026-11-01", Settings: sender.Settings{PayloadVersion: "2025-03-01"},
				Delivery: sender.Delivery{Status: sender.StatusPending, NextAttemptAt: now.Add(time.Minute)}},
			reason: WhyAwaitingRetry, until: now.Add(time.Minute),
			sentence: "Not attempted yet: a process that had it could not send it, and has put it off until 2026-11-20T12:01:00Z. Its data was published in the payload version 2026-11-01, and its subscription gets 2025-03-01: perhaps the one could not be made into the other, because a converter fails, or because the process has no catalogue, or an older one. The log of that process says why.",
		},
		"settings that cannot be read": {
			facts: Facts{Status: sender.SubscriptionActive, Settings: sender.ReadSettings([]byte("[]")),
				Delivery: sender.Delivery{Status: sender.StatusAwaitingRetry, AttemptCount: 1, Attempts: []sender.Attempt{timeout}, NextAttemptAt: now.Add(time.Minute)}},
			reason: WhyAwaitingRetry, until: now.Add(time.Minute),
			sentence: "Not attempted, because the settings that are stored of its subscription cannot be read by this release. It is looked at again at 2026-11-20T12:01:00Z. Give the subscription new settings, or run the release that wrote them.",
		},
		"rate-limited": {
			facts: Facts{Status: sender.SubscriptionActive, Health: proven, Settings: sender.Settings{Rate: 0.5}, RateAgain: now.Add(2 * time.Second), Ahead: 12,
				Delivery: due(time.Minute)},
			reason: WhyRateLimited, until: now.Add(2 * time.Second),
			sentence: "Due since 2026-11-20T11:59:00Z, and kept back by its subscription's rate of 0.5 attempts a second, which allows the next at 2026-11-20T12:00:02Z, behind 12 others of its subscription.",
		},
		"rate-limited to one a second": {
			facts: Facts{Status: sender.SubscriptionActive, Health: proven, Settings: sender.Settings{Rate: 1}, RateAgain: now.Add(time.Second),
				Delivery: due(time.Minute)},
			reason: WhyRateLimited, until: now.Add(time.Second),
			sentence: "Due since 2026-11-20T11:59:00Z, and kept back by its subscription's rate of 1 attempt a second, which allows the next at 2026-11-20T12:00:01Z, as the first of its subscription.",
		},
		"paused": {
			facts:    Facts{Status: sender.SubscriptionPaused, HeldSince: ago(time.Hour), Delivery: sender.Delivery{Status: sender.StatusHeld}},
			reason:   WhyPaused,
			sentence: "Held: its subscription was paused at 2026-11-20T11:00:00Z. Resume the subscription to send it.",
		},
		"disabled": {
			facts:    Facts{Status: sender.SubscriptionDisabled, HeldSince: ago(time.Hour), Reason: "failing for 5 days", Delivery: sender.Delivery{Status: sender.StatusHeld}},
			reason:   WhyDisabled,
			sentence: "Held: its subscription was disabled at 2026-11-20T11:00:00Z (failing for 5 days). Resume the subscription to send it.",
		},
		"disabled without a reason": {
			facts:    Facts{Status: sender.SubscriptionDisabled, Delivery: sender.Delivery{Status: sender.StatusHeld}},
			reason:   WhyDisabled,
			sentence: "Held: its subscription was disabled at an unknown time. Resume the subscription to send it.",
		},
		"cancelled with its subscription": {
			facts:    Facts{Delivery: sender.Delivery{Status: sender.StatusCancelled}},
			reason:   WhyCancelled,
			sentence: "Cancelled: its subscription was deleted before it was delivered.",
		},
		"cancelled with its subscription or by a redaction": {
			facts:    Facts{Delivery: sender.Delivery{Status: sender.StatusCancelled, Redacted: true}},
			reason:   WhyCancelled,
			sentence: "Cancelled: its event was redacted, or its subscription was deleted, before it was delivered.",
		},
		"cancelled by a redaction": {
			facts:    Facts{Status: sender.SubscriptionActive, Delivery: sender.Delivery{Status: sender.StatusCancelled, Redacted: true}},
			reason:   WhyCancelled,
			sentence: "Cancelled: its event was redacted, or its subscription was resumed without it before.",
		},
		"in flight, while it was redacted": {
			facts:  Facts{Status: sender.SubscriptionActive, Leased: now, Lease: now.Add(time.Minute), Delivery: sender.Delivery{Status: sender.StatusCancelled, InFlight: true, Redacted: true}},
			reason: WhyInFlight, until: now.Add(time.Minute),
			sentence: "Attempt 1 has been in flight since 2026-11-20T12:00:00Z; its event was redacted, so it is cancelled unless this attempt succeeds.",
		},
		"dead-lettered and redacted": {
			facts:    Facts{Status: sender.SubscriptionActive, Delivery: sender.Delivery{Status: sender.StatusDeadLettered, Attempts: []sender.Attempt{refused}, Redacted: true}},
			reason:   WhyDeadLettered,
			sentence: "Dead-lettered at 2026-11-20T11:59:30Z after 1 attempt over 0s; the last one failed: connect. Its event was redacted, so it cannot be sent again.",
		},
		"cancelled by a resume": {
			facts:    Facts{Status: sender.SubscriptionActive, Delivery: sender.Delivery{Status: sender.StatusCancelled}},
			reason:   WhyCancelled,
			sentence: "Cancelled: its subscription was resumed without it.",
		},
		"dead-lettered": {
			facts:    Facts{Status: sender.SubscriptionActive, Delivery: sender.Delivery{Status: sender.StatusDeadLettered, AttemptCount: 500, Attempts: []sender.Attempt{timeout, refused}}},
			reason:   WhyDeadLettered,
			sentence: "Dead-lettered at 2026-11-20T11:59:30Z after 500 attempts over 30s; the last one failed: connect. Redeliver it to start its schedule anew.",
		},
		"dead-lettered, for it was held back too long": {
			facts:    Facts{Status: sender.SubscriptionActive, Delivery: sender.Delivery{Status: sender.StatusDeadLettered, CreatedAt: ago(720 * time.Hour)}},
			reason:   WhyDeadLettered,
			sentence: "Dead-lettered without an attempt: an earlier version of its object, a dead letter, held it back for so long that its receiver may have forgotten its event, which was published at 2026-10-21T12:00:00Z. It can be redelivered by force.",
		},
		"dead-lettered, for it was held back too long, and attempted before": {
			facts: Facts{Status: sender.SubscriptionActive, Delivery: sender.Delivery{
				Status: sender.StatusDeadLettered, CreatedAt: ago(720 * time.Hour), Redacted: true,
				Attempts: []sender.Attempt{{Number: 1, StartedAt: ago(700 * time.Hour), Class: sender.ClassConnect, NextAttemptAt: ago(699 * time.Hour)}},
			}},
			reason:   WhyDeadLettered,
			sentence: "Dead-lettered after 1 attempt: an earlier version of its object, a dead letter, held it back for so long that its receiver may have forgotten its event, which was published at 2026-10-21T12:00:00Z. Its event was redacted, so it cannot be sent again.",
		},
		"sent again, due": {
			facts: Facts{Status: sender.SubscriptionActive, Health: proven, Single: true,
				Delivery: sender.Delivery{Status: sender.StatusAwaitingRetry, AttemptCount: 2, Attempts: []sender.Attempt{timeout, ok}, NextAttemptAt: now}},
			reason:   WhySentAgain,
			sentence: "It was delivered before, and is sent a single time more, whose failure leaves it delivered. Due since 2026-11-20T12:00:00Z, and waiting for its turn, as the first of its subscription.",
		},
		"sent again, and awaiting a repetition": {
			facts: Facts{Status: sender.SubscriptionActive, Single: true, Spared: true,
				Delivery: sender.Delivery{Status: sender.StatusAwaitingRetry, AttemptCount: 3, Attempts: []sender.Attempt{timeout, ok, reset}, NextAttemptAt: now.Add(time.Second)}},
			reason: WhySentAgain, until: now.Add(time.Second),
			sentence: "It was delivered before, and is sent a single time more, whose failure leaves it delivered. Attempt 3 failed at 2026-11-20T11:59:59Z: reset, the connection was closed before the answer was whole. It does not count, because most likely the server has not processed the request. Attempt 4 is made in its place, and is due at 2026-11-20T12:00:01Z.",
		},
		"sent again, later": {
			facts: Facts{Status: sender.SubscriptionActive, Single: true,
				Delivery: sender.Delivery{Status: sender.StatusAwaitingRetry, AttemptCount: 2, Attempts: []sender.Attempt{timeout, ok}, NextAttemptAt: now.Add(time.Minute)}},
			reason: WhySentAgain, until: now.Add(time.Minute),
			sentence: "It was delivered before, and is sent a single time more, whose failure leaves it delivered. The attempt is due at 2026-11-20T12:01:00Z.",
		},
		"behind another version": {
			facts:    Facts{Status: sender.SubscriptionActive, Behind: "dlv_1", Delivery: due(time.Second)},
			reason:   WhyBehind,
			sentence: "Waiting until another version of its object has ended: delivery dlv_1.",
		},
		"behind a dead letter": {
			facts:    Facts{Status: sender.SubscriptionActive, Behind: "dlv_1", BehindDead: true, Delivery: due(time.Second)},
			reason:   WhyBehind,
			sentence: "Held back by a dead letter of an earlier version of its object, dlv_1. Redeliver that, or pass over it.",
		},
		"first of a line that halts": {
			facts:    Facts{Status: sender.SubscriptionActive, Behind: "dlv_1", Delivery: sender.Delivery{ID: "dlv_1", Status: sender.StatusPending}},
			reason:   WhyBehind,
			sentence: "A newer version of its object has come, and its subscription wants the latest alone: it is about to be superseded, with the others before that version.",
		},
		"a dead letter that holds others back": {
			facts:    Facts{Status: sender.SubscriptionActive, HoldsBack: true, Delivery: sender.Delivery{Status: sender.StatusDeadLettered, Attempts: []sender.Attempt{refused}}},
			reason:   WhyDeadLettered,
			sentence: "Dead-lettered at 2026-11-20T11:59:30Z after 1 attempt over 0s; the last one failed: connect. Redeliver it to start its schedule anew. Later versions of its object wait for it: redeliver it, or pass over it to let them go on.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now = now
			c.facts.Delivery.AttemptCount = max(c.facts.Delivery.AttemptCount, len(c.facts.Delivery.Attempts))
			got := explain(&c.facts)
			var text, times string
			for _, p := range got.Parts {
				text += p.Text
				if !p.Time.IsZero() {
					times += p.Time.Format(time.RFC3339)
				}
			}
			require.Equal(t, c.sentence, text)
			require.Equal(t, strings.Join(regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`).FindAllString(c.sentence, -1), ""), times, "each time is a part of its own")
			got.Parts = nil
			require.Equal(t, Why{Reason: c.reason, Sentence: c.sentence, Until: c.until, Subscription: c.facts.Status, Behind: strings.TrimPrefix(c.facts.Behind, c.facts.Delivery.ID), HoldsBack: c.facts.HoldsBack, Attempts: c.facts.Delivery.Attempts}, got)
		})
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th"} {
		require.Equal(t, want, ordinal(n))
	}
}
