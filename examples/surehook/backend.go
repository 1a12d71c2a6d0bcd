package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"time"

	"github.com/surehook/surehook/receiver/catchup"
	"github.com/surehook/surehook/sender"
)

// backend is where a command finds the service: a reference server, or the database of
// any service that embeds the library. Errors that are a noError are the service's answer.
type backend interface {
	deliveries(ctx context.Context, f filter, cursor string, limit int) (page, error)
	delivery(ctx context.Context, id string) (record, error)
	redeliver(ctx context.Context, id string, force bool) error
	// event tells whose event it is; "": everybody's who asks for its type.
	event(ctx context.Context, id string) (e eventInfo, subscriber string, err error)
	// eventsAbout returns up to limit events about an object, the newest first.
	eventsAbout(ctx context.Context, about object, limit int) (all []eventInfo, more bool, err error)

	// whyOf says why an event has no delivery to a subscription, or nothing if it is for others.
	whyOf(ctx context.Context, event, subscription string) (string, error)

	subscriptions(ctx context.Context, status, subscriber, cursor string) (subscriptionPage, error)
	pause(ctx context.Context, id string) (subscription, error)
	resume(ctx context.Context, id string, which resumption) (subscription, error)

	notices(ctx context.Context, which notices, cursor string) (noticePage, error)
	acknowledge(ctx context.Context, id string) error

	preview(ctx context.Context, f filter) (matched, error)
	replay(ctx context.Context, f filter, rate float64, force bool) (id string, err error)
	replayed(ctx context.Context, id string) (replayState, error)
	cancelReplay(ctx context.Context, id string) error

	publish(ctx context.Context, e sender.Event) (sender.Ref, error)
	events(subscriber string) (catchup.Source, error)

	close()
}

// filter selects deliveries. Empty fields select all.
type filter struct {
	status, subscription, subscriber, event, eventType, class string
	code                                                      int // 0: any
	since, until                                              moment
	object                                                    object // "": any
}

func (f *filter) flags(set *flag.FlagSet, statuses string) {
	set.StringVar(&f.status, "status", "", "a `status`: "+statuses)
	set.StringVar(&f.subscription, "subscription", "", "the `id` of a subscription")
	set.StringVar(&f.subscriber, "subscriber", "", "the `id` of the subscriptions' owner")
	set.StringVar(&f.eventType, "type", "", "an event `type`: exact, \"prefix.*\" or \"*\"")
	set.StringVar(&f.class, "class", "", "how the last attempt failed: a `class` such as dns, connect, tls, timeout, status")
	set.IntVar(&f.code, "code", 0, "the HTTP `status` that the last attempt was answered with, such as 503")
	set.Var(&f.since, "since", "published at a `time` or later: 2026-01-31T12:00:00Z, or how long ago: 24h, 7d")
	set.Var(&f.until, "until", "published before a `time`, in the same forms")
}

// The records, with the members that the reference server's JSON has.
type (
	object struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	}
	eventInfo struct {
		ID        string    `json:"id"`
		Type      string    `json:"type"`
		Object    object    `json:"object"`
		Version   int64     `json:"version"`
		CreatedAt time.Time `json:"created_at"`
	}
	delivery struct {
		ID             string     `json:"id"`
		Event          eventInfo  `json:"event"`
		SubscriptionID string     `json:"subscription_id"`
		SubscriberID   string     `json:"subscriber_id"`
		URL            string     `json:"url"`
		Status         string     `json:"status"`
		AttemptCount   int        `json:"attempt_count"`
		NextAttemptAt  *time.Time `json:"next_attempt_at"`
		LastErrorClass string     `json:"last_error_class"`
	}
	header struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	attempt struct {
		Number          int        `json:"number"`
		StartedAt       time.Time  `json:"started_at"`
		DurationMS      int64      `json:"duration_ms"`
		StatusCode      *int       `json:"status_code"`
		Error           *string    `json:"error"`
		ErrorClass      string     `json:"error_class"`
		ResponseSnippet *string    `json:"response_snippet"`
		RequestHeaders  []header   `json:"request_headers"`
		ResponseHeaders []header   `json:"response_headers"`
		NextAttemptAt   *time.Time `json:"next_attempt_at"`
	}
	record struct {
		delivery
		Payload  string    `json:"payload"`
		Attempts []attempt `json:"attempts"`
		Why      string    `json:"why"`

		WaitsFor  *string `json:"waits_for"`
		HoldsBack bool    `json:"holds_back"`
	}
	page struct {
		Data       []delivery `json:"data"`
		NextCursor *string    `json:"next_cursor"`
	}
	// matched is what a replay would send.
	matched struct {
		Count         int64      `json:"matched"`
		Oldest        *time.Time `json:"oldest,omitempty"` // when the events were published
		Newest        *time.Time `json:"newest,omitempty"`
		Subscriptions []share    `json:"subscriptions,omitempty"` // with the most of them
	}
	share struct {
		ID    string `json:"id"`
		Count int64  `json:"matched"`
	}
	replayState struct {
		ID      string `json:"id"`
		Status  string `json:"status"`
		Matched int64  `json:"matched"`
		Sent    int64  `json:"replayed"`
		Skipped int64  `json:"skipped"`
		TooOld  int64  `json:"too_old,omitempty"` // of those skipped; a server does not tell it
		More    bool   `json:"more,omitempty"`    // more may match than Matched, which is 0 while a server's replay runs
		Ended   bool   `json:"-"`
		Failure string `json:"error,omitempty"`
	}
	sentEvent struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Object  object `json:"object"`
		Version int64  `json:"version"`
	}
)

// target says where the service is.
type target struct {
	server, tokenFile string
	place             databasePlace
}

func (o *target) flags(f *flag.FlagSet) {
	f.StringVar(&o.server, "server", "", "the `URL` of a reference server (or SUREHOOK_SERVER; default "+defaultServer+"), whose token is in SUREHOOK_TOKEN or -token-file")
	f.StringVar(&o.tokenFile, "token-file", "", "a `file` with the bearer token")
	o.place.flags(f)
}

const defaultServer = "http://127.0.0.1:8080"

// open chooses what the flags name before what the environment names.
func (o *target) open(ctx context.Context, t *terminal) (backend, error) {
	byFlag := o.place.database != "" || o.place.file != ""
	switch {
	case byFlag && (o.server != "" || o.tokenFile != ""):
		return nil, errors.New("there are both a server (-server, -token-file) and a database: give one of them")
	case !byFlag && o.server == "" && o.tokenFile == "" && t.env("SUREHOOK_SERVER") != "" && t.env("SUREHOOK_DATABASE") != "":
		return nil, errors.New("SUREHOOK_SERVER and SUREHOOK_DATABASE are both set: choose by -server or -database")
	case byFlag || o.server == "" && o.tokenFile == "" && t.env("SUREHOOK_DATABASE") != "":
		db, err := o.place.open(ctx, t.env, false)
		if err != nil {
			return nil, err
		}
		return newStored(db)
	case o.place.schema != "":
		return nil, errors.New("-schema is for a -database: a server has found its own tables")
	}
	token := t.env("SUREHOOK_TOKEN")
	if o.tokenFile != "" {
		var err error
		if token, err = textFile("token-file", o.tokenFile); err != nil {
			return nil, err
		}
	}
	return newServer(cmp.Or(o.server, t.env("SUREHOOK_SERVER"), defaultServer), token)
}
