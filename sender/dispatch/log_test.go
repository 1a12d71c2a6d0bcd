package dispatch_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

// logged has the records of a log, and those at Warn and above apart.
type logged struct{ bedtest.LockedLog }

func (l *logged) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: level}))
}

// of returns the records with a message that begins with some words.
func (l *logged) of(t *testing.T, words string) (found []map[string]any) {
	t.Helper()
	for line := range strings.Lines(l.String()) {
		var record map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		if strings.HasPrefix(record["msg"].(string), words) {
			found = append(found, record)
		}
	}
	return found
}

func TestFailuresAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, log := bedtest.New(t), &logged{}
		endpoint := sendertest.NewRoundTripper(
			sendertest.Status(500), sendertest.Status(401), sendertest.Reset(), sendertest.Status(204), // the first streak
			sendertest.Status(503), sendertest.Status(204),
		)
		d := b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint, Logger: log.logger(slog.LevelDebug)})
		s, _ := b.Subscribe("sub_a", "http://endpoint/?token=canary")
		event := b.Publish("sub_a")
		for range 4 {
			_, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			time.Sleep(3 * time.Hour)
		}
		again := b.Publish("sub_a")
		for range 2 {
			_, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			time.Sleep(3 * time.Hour)
		}
		require.Len(t, endpoint.Requests(), 6)

		first := log.of(t, "a subscription's endpoint begins to fail")
		require.Len(t, first, 2, "once for each streak")
		require.Equal(t, "WARN", first[0]["level"])
		require.Equal(t, event.ID, first[0]["event_id"])
		require.EqualValues(t, 500, first[0]["status_code"])
		require.Equal(t, again.ID, first[1]["event_id"])
		later := log.of(t, "an attempt failed")
		require.Len(t, later, 2)
		require.Equal(t, "DEBUG", later[0]["level"])
		require.EqualValues(t, 401, later[0]["status_code"])
		require.Equal(t, "reset", later[1]["error_class"])
		require.NotContains(t, later[1], "status_code", "there was none")
		for i, record := range append(first, later...) {
			require.Equal(t, s.ID, record["subscription_id"])
			require.Equal(t, "sub_a", record["subscriber_id"])
			require.Equal(t, "thing.changed", record["event_type"])
			due, err := time.Parse(time.RFC3339, record["next_attempt_at"].(string))
			require.NoError(t, err)
			require.True(t, due.After(time.Unix(0, 0)), "record %d", i)
		}
		require.NotContains(t, log.String(), "canary")
	})
}

func TestAStreakIsLoggedOnceWhateverIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, log := bedtest.New(t), &logged{}
		d := b.Dispatcher(dispatch.Config{UnguardedTransport: sendertest.NewRoundTripper(sendertest.Status(500)), Logger: log.logger(slog.LevelDebug)})
		b.Subscribe("sub_a", "http://endpoint/")
		for range 20 { // their attempts are under way side by side
			b.Publish("sub_a")
		}
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		require.Len(t, log.of(t, "a subscription's endpoint begins to fail"), 1)
		require.Len(t, log.of(t, "an attempt failed"), 19)
	})
}

func TestRunLogsItsStartAndItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, log := bedtest.New(t), &logged{}
		d := b.Dispatcher(dispatch.Config{Logger: log.logger(slog.LevelInfo), Slots: 16, Timeout: 3 * time.Second})
		stop := b.Start(d)
		synctest.Wait()
		started := log.of(t, "the dispatcher has started")
		require.Len(t, started, 1)
		require.Equal(t, "INFO", started[0]["level"])
		require.NotZero(t, started[0]["process"], "others name it so if it is gone")
		require.Equal(t, "*memory.Store", started[0]["store"])
		require.EqualValues(t, 16, started[0]["slots"])
		require.EqualValues(t, 3*time.Second, started[0]["timeout"])
		require.EqualValues(t, time.Minute, started[0]["lease"])
		require.EqualValues(t, 8*time.Second, started[0]["drain_timeout"])
		require.Empty(t, log.of(t, "the dispatcher has stopped"))
		require.ErrorIs(t, d.Run(t.Context()), dispatch.ErrRunning)
		require.Len(t, log.of(t, "the dispatcher does not run"), 1)
		require.NoError(t, stop())
		require.Len(t, log.of(t, "the dispatcher has stopped"), 1)
	})
}

// unfit is a store that was not migrated.
type unfit struct{ dispatch.Store }

func (unfit) Check(context.Context) error { return sender.ErrUnfit }

// Callers that do not look at what Run returns see it in the log.
func TestRunLogsWhyItDoesNotBegin(t *testing.T) {
	b, log := bedtest.New(t), &logged{}
	b.Subscribe("sub_a", "http://endpoint/")
	cfg := dispatch.Config{Logger: log.logger(slog.LevelInfo)}
	require.ErrorIs(t, b.DispatcherOn(unfit{b.Store}, cfg).Run(t.Context()), sender.ErrUnfit)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "another", Key: make([]byte, 32)})
	require.NoError(t, err)
	d, err := dispatch.New(b.Store, keys, &cfg)
	require.NoError(t, err)
	require.ErrorIs(t, d.Run(t.Context()), sender.ErrSealed)
	refused := log.of(t, "the dispatcher does not run")
	require.Len(t, refused, 2)
	for _, record := range refused {
		require.Equal(t, "ERROR", record["level"])
	}
	require.Equal(t, sender.ErrUnfit.Error(), refused[0]["error"])
	require.Contains(t, refused[1]["error"], "cannot be opened")
	require.Empty(t, log.of(t, "the dispatcher has started"))
}

// A dead letter is one line of the log: its notice. That of a notice, which has none, has a
// line of its own.
func TestADeadLetterIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, log := bedtest.New(t), &logged{}
		b.Subscribe("sub_a", "http://dead/")
		s, err := b.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://dead/", EventTypes: []string{"delivery.*"}})
		require.NoError(t, err)
		stop := b.Start(b.Dispatcher(dispatch.Config{
			UnguardedTransport: sendertest.NewRoundTripper(sendertest.Answer(500, nil, "")), Policy: shortLife(t), Logger: log.logger(slog.LevelWarn),
			MaxIdle: 10 * time.Second,
		}))
		b.Publish("sub_a")
		time.Sleep(time.Hour)
		require.NoError(t, stop())
		notices := log.of(t, "a delivery is a dead letter: it is not attempted any more")
		require.Len(t, notices, 1)
		own := log.of(t, "a delivery of a notice was dead-lettered")
		require.Len(t, own, 1)
		require.Equal(t, s.ID, own[0]["subscription_id"])
		require.Len(t, log.of(t, ""), 2+len(log.of(t, "a subscription's endpoint begins to fail")), "nothing else")
	})
}

// A line of the log says what has happened to a subscription, and not only for how long.
func TestADisabledSubscriptionIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, log := bedtest.New(t), &logged{}
		b.Subscribe("sub_a", "http://dead/")
		stop := b.Start(b.Dispatcher(dispatch.Config{
			UnguardedTransport: sendertest.NewRoundTripper(sendertest.Answer(500, nil, "")), Policy: dispatch.Policy{DisableAfter: time.Hour}, Logger: log.logger(slog.LevelWarn),
			MaxIdle: time.Minute, // fewer looks in the hours
		}))
		b.Publish("sub_a")
		time.Sleep(24 * time.Hour)
		require.NoError(t, stop())
		require.NotEmpty(t, log.of(t, "a subscription is failing: it has been failing for"))
		require.Len(t, log.of(t, "a subscription was disabled, and its deliveries are held until it is resumed: it has been failing for"), 1)
	})
}
