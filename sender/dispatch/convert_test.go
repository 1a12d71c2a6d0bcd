package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/catalogue/shop"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
)

// versioned is a bed whose registry and publisher have the shop's catalogue.
type versioned struct {
	*bedtest.Bed
	convert sender.Convert
	log     *bedtest.LockedLog
	putOff  bedtest.Noted[dispatch.PutOffReason]
}

func newVersioned(t *testing.T) *versioned {
	t.Helper()
	types, err := shop.New()
	require.NoError(t, err)
	b := bedtest.New(t)
	b.Registry, err = sender.NewRegistry[*memory.Tx](b.Store, b.Keys, &sender.RegistryConfig{Network: bedtest.Private, PayloadVersion: types.Newest()})
	require.NoError(t, err)
	b.Publisher, err = sender.NewPublisher[*memory.Tx](b.Store, &sender.PublisherConfig{PayloadVersion: types.PayloadVersion})
	require.NoError(t, err)
	_, _, err = b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	return &versioned{Bed: b, convert: types.Convert, log: &bedtest.LockedLog{}}
}

// subscribe makes a subscription that is pinned to a version; "": to the newest.
func (v *versioned) subscribe(host, version string) string {
	v.T.Helper()
	s, err := v.Registry.Subscribe(v.T.Context(), sender.NewSubscription{
		Subscriber: "sub_a", URL: "http://" + host + "/", EventTypes: []string{"invoice.*"}, Settings: sender.Settings{PayloadVersion: version},
	})
	require.NoError(v.T, err)
	return s.ID
}

const (
	newestData = `{"id":"in_1","total":{"amount":4200,"currency":"EUR"},"updated_at":"2026-01-02T15:04:05Z"}`
	firstData  = `{"currency":"EUR","id":"in_1","total":4200}`
)

func (v *versioned) publish(data string) {
	v.T.Helper()
	_, err := v.Publisher.Publish(v.T.Context(), sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "in_1"}, Data: json.RawMessage(data)})
	require.NoError(v.T, err)
}

// run delivers for a time, as a process with a converter, and returns the bodies by their
// endpoints.
func (v *versioned) run(convert sender.Convert, store dispatch.Store, d time.Duration, status int) map[string][]string {
	v.T.Helper()
	endpoint := sendertest.NewRoundTripper(slices.Repeat([]sendertest.Step{sendertest.Status(status)}, 100)...)
	stop := v.Start(v.DispatcherOn(store, dispatch.Config{UnguardedTransport: endpoint, Convert: convert, MaxIdle: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(v.log, nil)),
		Hooks: dispatch.Hooks{PutOff: func(_ context.Context, p dispatch.PutOff) { v.putOff.Add(p.Reason) }},
	}))
	time.Sleep(d)
	require.NoError(v.T, stop())
	got := map[string][]string{}
	for _, r := range endpoint.Requests() {
		got[r.URL.Host] = append(got[r.URL.Host], string(r.Body))
	}
	return got
}

func (v *versioned) body(subscription string) string {
	v.T.Helper()
	list, _, err := v.History.Deliveries(v.T.Context(), history.DeliveryQuery{Subscription: subscription})
	require.NoError(v.T, err)
	require.Len(v.T, list, 1)
	d, err := v.History.Delivery(v.T.Context(), list[0].ID)
	require.NoError(v.T, err)
	return string(d.Body)
}

// Each subscription gets the version that it is pinned to, and history shows what was posted.
func TestPayloadVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVersioned(t)
		old, older, newest := v.subscribe("old", shop.First), v.subscribe("older", "2020-01-01"), v.subscribe("newest", "")
		v.publish(newestData)
		got := v.run(v.convert, v.Store, 10*time.Second, http.StatusOK)
		for host, c := range map[string]struct{ id, tail string }{
			"old":    {old, `,"version":1,"payload_version":"2025-03-01","data":` + firstData + "}"},
			"older":  {older, `,"version":1,"payload_version":"2025-03-01","data":` + firstData + "}"},
			"newest": {newest, `,"version":1,"payload_version":"2026-11-01","data":` + newestData + "}"},
		} {
			require.Len(t, got[host], 1)
			require.Contains(t, got[host][0], c.tail)
			require.Equal(t, got[host][0], v.body(c.id))
		}
	})
}

// A type's first version, from before it had dates, goes out without one. Filters see it so.
func TestFirstVersionWithoutADate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVersioned(t)
		types, err := catalogue.New([]catalogue.Type{{
			Name: "invoice.paid", Object: "invoice", Kind: catalogue.State,
			Versions: []catalogue.Version{
				{Examples: []catalogue.Example{{ObjectID: "in_1", Data: json.RawMessage(`{"total":4200}`)}}},
				{
					Since: "2026-11-01", Examples: []catalogue.Example{{ObjectID: "in_1", Data: json.RawMessage(`{"total":{"amount":4200}}`)}},
					Down: catalogue.Converter(func(newer struct {
						Total struct{ Amount json.RawMessage }
					}) (map[string]json.RawMessage, error) {
						return map[string]json.RawMessage{"total": newer.Total.Amount}, nil
					}),
				},
			},
		}})
		require.NoError(t, err)
		pinned := v.subscribe("pinned", "2020-01-01")
		v.Registry, err = sender.NewRegistry[*memory.Tx](v.Store, v.Keys, &sender.RegistryConfig{Network: bedtest.Private}) // without a catalogue
		require.NoError(t, err)
		before := v.subscribe("before", "")
		for host, filter := range map[string]string{"matching": `{"data.total":4200}`, "other": `{"data.total.amount":4200}`} {
			_, err := v.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://" + host + "/", Filter: filter})
			require.NoError(t, err)
		}
		v.publish(`{"total":{"amount":4200}}`)
		got := v.run(types.Convert, v.Store, 10*time.Second, http.StatusServiceUnavailable)
		again := v.run(nil, v.Store, 2*time.Minute, http.StatusOK) // what was sent once is sent again
		for host, id := range map[string]string{"pinned": pinned, "before": before} {
			require.Len(t, got[host], 1)
			require.Contains(t, got[host][0], `,"version":1,"data":{"total":4200}}`)
			require.Equal(t, got[host], again[host])
			require.Equal(t, got[host][0], v.body(id))
		}
		require.Len(t, got["matching"], 1)
		require.NotContains(t, got, "other")
	})
}

// slowKeepStore takes longer to keep a body than a process may say nothing.
type slowKeepStore struct{ dispatch.Store }

func (s slowKeepStore) KeepBodies(ctx context.Context, all []dispatch.KeptBody) (map[dispatch.DeliveryKey][]byte, error) {
	time.Sleep(7 * time.Second)
	return s.Store.KeepBodies(ctx, all)
}

// A process lives while the body of what it has claimed is kept, however long that takes.
func TestSlowlyKeptBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVersioned(t)
		v.subscribe("old", shop.First)
		v.publish(newestData)
		got := v.run(v.convert, slowKeepStore{v.Store}, 10*time.Second, http.StatusOK)
		require.Len(t, got["old"], 1)
	})
}

// The bytes of a delivery do not change between its attempts. They stay if another
// converter is deployed, if the subscription is pinned to a newer version, if a process
// has no catalogue, and if the delivery is sent again after its end.
func TestBytesNeverChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVersioned(t)
		id := v.subscribe("old", shop.First)
		v.publish(newestData)
		first := v.run(v.convert, v.Store, time.Second, http.StatusServiceUnavailable)["old"]
		require.Len(t, first, 1)

		other := func(string, string, string, json.RawMessage) (string, json.RawMessage, error) {
			return shop.First, json.RawMessage(`{"other":true}`), nil
		}
		broken := func(string, string, string, json.RawMessage) (string, json.RawMessage, error) { panic("broken") }
		for _, process := range []struct {
			convert sender.Convert
			until   time.Duration // the next retry was due
		}{{other, 10 * time.Minute}, {broken, time.Hour}, {nil, 4 * time.Hour}} {
			again := v.run(process.convert, v.Store, process.until, http.StatusServiceUnavailable)["old"]
			require.NotEmpty(t, again)
			require.Equal(t, first[0], again[0])
		}
		newest := sender.Settings{PayloadVersion: shop.Second}
		_, err := v.Registry.Update(t.Context(), id, sender.SubscriptionChange{Settings: &newest})
		require.NoError(t, err)
		again := v.run(v.convert, v.Store, 16*time.Hour, http.StatusOK)["old"]
		require.Equal(t, first, again)
		require.Equal(t, first[0], v.body(id))
		d := v.Delivery()
		require.Equal(t, sender.StatusDelivered, d.Status)
		require.NoError(t, v.History.Redeliver(t.Context(), d.ID))
		require.Equal(t, first, v.run(v.convert, v.Store, time.Second, http.StatusOK)["old"])

		v.publish(newestData)
		got := v.run(v.convert, v.Store, time.Second, http.StatusOK)["old"]
		require.Len(t, got, 1)
		require.Contains(t, got[0], newestData, "what comes later is in the new version")
	})
}

// A delivery whose payload cannot be made is put off and logged without its data, others go
// on, and it is sent once the mistake is mended.
func TestPayloadThatCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVersioned(t)
		v.subscribe("old", shop.First)
		v.subscribe("newest", "")
		v.publish(`{"id":"in_1","created_at":"a secret"}`)
		got := v.run(v.convert, v.Store, 10*time.Second, http.StatusOK)
		require.Empty(t, got["old"])
		require.Len(t, got["newest"], 1)
		require.Contains(t, v.log.String(), "cannot be sent in the payload version of its subscription")
		require.Contains(t, v.log.String(), "Down of version")
		require.Equal(t, []dispatch.PutOffReason{dispatch.PutOffPayload}, v.putOff.List())
		require.NotContains(t, v.log.String(), "a secret")
		list, _, err := v.History.Deliveries(t.Context(), history.DeliveryQuery{Status: sender.StatusPending})
		require.NoError(t, err)
		require.Len(t, list, 1)
		why, err := v.History.Why(t.Context(), list[0].ID)
		require.NoError(t, err)
		require.Contains(t, why.Sentence, "Its data was published in the payload version 2026-11-01, and its subscription gets 2025-03-01")
		require.Equal(t, list[0].NextAttemptAt, why.Until)
		mended := func(_, _, _ string, data json.RawMessage) (string, json.RawMessage, error) {
			return shop.First, data, nil
		}
		got = v.run(mended, v.Store, 2*time.Minute, http.StatusOK)
		require.Len(t, got["old"], 1)
		require.Contains(t, got["old"][0], `"payload_version":"2025-03-01","data":{"id":"in_1","created_at":"a secret"}}`)
	})
}

// A filter decides by the version that its subscription gets. If that cannot be made, nothing is
// lost: the delivery waits for the mended converter.
func TestFiltersDecideByTheVersionThatIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVersioned(t)
		for host, version := range map[string]string{"old": shop.First, "newest": ""} {
			for path, filter := range map[string]string{"first": `{"data.total":{"gte":4200}}`, "second": `{"data.total.amount":{"gte":4200}}`} {
				_, err := v.Registry.Subscribe(t.Context(), sender.NewSubscription{
					Subscriber: "sub_a", URL: "http://" + path + "." + host + "/", Filter: filter, Settings: sender.Settings{PayloadVersion: version},
				})
				require.NoError(t, err)
			}
		}
		v.publish(newestData)
		got := v.run(v.convert, v.Store, 10*time.Second, http.StatusOK)
		require.ElementsMatch(t, []string{"first.old", "second.newest"}, slices.Collect(maps.Keys(got)))
		require.Contains(t, got["first.old"][0], firstData)

		v.publish(`{"id":"in_1","created_at":"no time"}`)
		require.Empty(t, v.run(v.convert, v.Store, 10*time.Second, http.StatusOK))
		mended := func(_, _, _ string, data json.RawMessage) (string, json.RawMessage, error) {
			return shop.First, data, nil
		}
		got = v.run(mended, v.Store, 2*time.Minute, http.StatusOK)
		require.ElementsMatch(t, []string{"first.old", "second.old"}, slices.Collect(maps.Keys(got)))
	})
}

// A converter that makes no JSON holds its delivery up, as one that fails does.
func TestConverterThatMakesNoJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVersioned(t)
		v.subscribe("old", shop.First)
		v.publish(newestData)
		broken := func(string, string, string, json.RawMessage) (string, json.RawMessage, error) {
			return shop.First, json.RawMessage(`{"id":`), nil
		}
		require.Empty(t, v.run(broken, v.Store, 10*time.Second, http.StatusOK))
		require.Contains(t, v.log.String(), "makes no JSON")
		require.Equal(t, []dispatch.PutOffReason{dispatch.PutOffPayload}, v.putOff.List())
		require.Len(t, v.run(v.convert, v.Store, 2*time.Minute, http.StatusOK)["old"], 1)
	})
}

// A converter that makes more than may be published holds its delivery up, as one that fails
// does, until a mended one is deployed.
func TestConverterThatMakesTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVersioned(t)
		v.subscribe("old", shop.First)
		v.publish(newestData)
		body := func(bytes int) sender.Convert { // makes a body of that many, if the head has 500
			return func(string, string, string, json.RawMessage) (string, json.RawMessage, error) {
				return shop.First, json.RawMessage(`"` + strings.Repeat("x", bytes-500) + `"`), nil
			}
		}
		require.Empty(t, slices.Collect(maps.Keys(v.run(body(1<<20+500), v.Store, 10*time.Second, http.StatusOK))))
		require.Contains(t, v.log.String(), "bytes, at most 1048576 are allowed")
		require.Equal(t, []dispatch.PutOffReason{dispatch.PutOffPayload}, v.putOff.List())
		require.Equal(t, 0, v.Delivery().AttemptCount, "an attempt that was not made is not counted")
		require.Len(t, v.run(body(1<<20), v.Store, 2*time.Minute, http.StatusOK)["old"], 1)
	})
}

// A process without a catalogue sends nothing in a version that the subscription does not
// expect.
func TestPinnedWithoutACatalogue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVersioned(t)
		v.subscribe("old", shop.First)
		v.subscribe("newest", "")
		v.publish(newestData)
		got := v.run(nil, v.Store, 10*time.Second, http.StatusOK)
		require.Empty(t, got["old"])
		require.Len(t, got["newest"], 1)
		require.Contains(t, v.log.String(), "this process has no catalogue")
		require.Len(t, v.run(v.convert, v.Store, 2*time.Minute, http.StatusOK)["old"], 1)
	})
}

// A subscription from before there was a catalogue gets the oldest version of a process that
// has one, and then the same bytes of one that has none yet.
func TestBytesNeverChangeWithoutAPin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVersioned(t)
		before, err := sender.NewRegistry[*memory.Tx](v.Store, v.Keys, &sender.RegistryConfig{Network: bedtest.Private})
		require.NoError(t, err)
		v.Registry = before
		v.subscribe("unpinned", "")
		v.publish(newestData)
		first := v.run(v.convert, v.Store, time.Second, http.StatusServiceUnavailable)["unpinned"]
		require.Len(t, first, 1)
		require.Contains(t, first[0], firstData)
		require.Equal(t, first, v.run(nil, v.Store, 10*time.Minute, http.StatusOK)["unpinned"])
	})
}

// keepsInVain keeps bodies, and loses the answers.
type keepsInVain struct{ dispatch.Store }

func (s keepsInVain) KeepBodies(ctx context.Context, all []dispatch.KeptBody) (map[dispatch.DeliveryKey][]byte, error) {
	if _, err := s.Store.KeepBodies(ctx, all); err != nil {
		return nil, err
	}
	return nil, errors.New("the connection is lost")
}

// A kept body is sent, also if the subscription has moved to a newer version before the
// first attempt: history shows that body.
func TestBodyThatWasKeptAndNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVersioned(t)
		id := v.subscribe("old", shop.First)
		v.publish(newestData)
		require.Empty(t, v.run(v.convert, keepsInVain{v.Store}, 10*time.Second, http.StatusOK)["old"])
		_, err := v.Registry.Update(t.Context(), id, sender.SubscriptionChange{Settings: &sender.Settings{PayloadVersion: shop.Second}})
		require.NoError(t, err)
		got := v.run(v.convert, v.Store, 2*time.Minute, http.StatusOK)["old"]
		require.Len(t, got, 1)
		require.Equal(t, got[0], v.body(id), "history shows what was posted")
	})
}

// keepsNothing fails to keep bodies.
type keepsNothing struct{ dispatch.Store }

func (keepsNothing) KeepBodies(context.Context, []dispatch.KeptBody) (map[dispatch.DeliveryKey][]byte, error) {
	return nil, errors.New("the disk is full")
}

// A body that could not be kept is not sent. It is sent soon after the database keeps bodies again.
func TestBodyThatCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVersioned(t)
		v.subscribe("old", shop.First)
		v.publish(newestData)
		require.Empty(t, v.run(v.convert, keepsNothing{v.Store}, 10*time.Second, http.StatusOK)["old"])
		require.Contains(t, v.log.String(), "the disk is full")
		require.Equal(t, 1, strings.Count(v.log.String(), "the disk is full"), "it is logged once in a minute")
		require.Subset(t, []dispatch.PutOffReason{dispatch.PutOffBody}, v.putOff.List())
		require.NotEmpty(t, v.putOff.List())
		require.Equal(t, 0, v.Delivery().AttemptCount, "an attempt that was not made is not counted")
		require.Len(t, v.run(v.convert, v.Store, 10*time.Second, http.StatusOK)["old"], 1)
	})
}
