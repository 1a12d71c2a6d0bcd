package main

import (
	"encoding/json"
	"time"
)

// words are what the OpenAPI document says of an operation beside who may call it, with
// what is sent and what comes back, for example.
type words struct {
	about             string
	request, response any
}

// Ids such as examples have.
const (
	anySubscriber   = "sub_ada"
	anySubscription = "wsub_06h0gtei5ps76rvbekl4rsvik"
	anyEvent        = "evt_06h0gtek9tf30mc99r8jipb6c"
	anyDelivery     = "dlv_06h0gtek9tf30mc99r8jipb6c_1"
	anyJob          = "job_06h0gtelnlptul63ff7tq7rst"
	anyNotice       = "ntc_06h0gtemohs33breifag1nrvs"
	anyChallenge    = "bvZjm8sEC1CXcBDLiVAVvES4g9A-EF60so-yD1ROq-4"
	anySecret       = "whsec_bm90IGEgc2VjcmV0LCBhbiBleGFtcGxlIG9mIG9uZQ==" //nolint:gosec // of nobody
)

// described has them by operation.
func described() map[string]words {
	all := map[string]words{}
	for _, of := range []map[string]words{aboutSubscribers(), aboutSecrets(), aboutSubscriptions(), aboutEvents(), aboutDeliveries(), aboutJobs(), aboutNotices(), aboutService()} {
		for id, w := range of {
			all[id] = w
		}
	}
	return all
}

func moment(minutes int) time.Time {
	return time.Date(2026, time.January, 2, 15, 4+minutes, 5, 0, time.UTC)
}

func momentary(minutes int) *time.Time {
	at := moment(minutes)
	return &at
}

func aPage[T any](one T) List[T] { return List[T]{Data: []T{one}} }

func aSubscriber() Subscriber {
	return Subscriber{ID: anySubscriber, Name: "Ada", Attributes: Attributes{"plan": json.RawMessage(`"pro"`)}, Version: 1, CreatedAt: moment(0), UpdatedAt: moment(0)}
}

func aboutSubscribers() map[string]words {
	name := "Ada Lovelace"
	changed := aSubscriber()
	changed.Name, changed.Version, changed.UpdatedAt = name, 2, moment(5)
	return map[string]words{
		"create-subscriber": {
			"Creates a customer, with a bearer token and a signing secret that are shown here alone, and publishes subscriber.created in the same transaction.",
			NewSubscriber{ID: anySubscriber, Name: "Ada", Attributes: Attributes{"plan": json.RawMessage(`"pro"`)}},
			CreatedSubscriber{Subscriber: aSubscriber(), Token: "tok_for_example", SigningSecret: anySecret},
		},
		"list-subscribers":  {"Lists the customers that are not deleted; name restricts the list to those whose names begin with it.", nil, aPage(aSubscriber())},
		"get-subscriber":    {"Reads the current state, as thin events ask for. Its ETag is made from the version.", nil, aSubscriber()},
		"change-subscriber": {"Changes what is given, raises the version by one and publishes subscriber.updated, in one transaction.", SubscriberChange{Name: &name}, changed},
		"delete-subscriber": {"Publishes subscriber.deleted and ends the subscriber, in one transaction. Its own subscriptions still get that event, and all that was answered before this call was made. An event that is published to it during the call is refused, or accepted and perhaps in the feed alone. Its token ends at once, and its id is never given out again.", nil, nil},
		"redact-subscriber": {"Removes the bodies of all events that were addressed to a subscriber, which may be deleted, the headers of their attempts, and what endpoints answered to them. Events, versions and deliveries stay on record; none of these deliveries can be sent again. Results of exports that were made before keep what they have until they are removed.", nil, Redacted{Events: 12}},
	}
}

func aboutSecrets() map[string]words {
	day := integer(86400)
	return map[string]words{
		"get-operator-secret": {"Shows the secret that signs the deliveries of the operator's own subscriptions.", nil, ShownSecret{anySecret}},
		"rotate-secret": {
			"Makes a new signing secret. In the overlap Webhook-Signature carries signatures of both; an overlap of 0 ends every older secret at once and is never refused.",
			RotateSecret{OverlapSeconds: &day, SignAfterSeconds: 3600}, RotatedSecret{anySecret, moment(1440), moment(60)},
		},
		"activate-secret": {"Ends the wait of a rotation with sign_after_seconds: the new secret signs from now on.", nil, nil},
		"retire-secret":   {"Ends the previous secret before its overlap is over.", nil, nil},
		"rotate-token":    {"Makes a new bearer token; the one before ends now. A subscriber that was imported gets its first one this way.", nil, RotatedToken{"tok_for_example"}},
		"open-portal": {"Makes a token that opens the subscriber's portal for some minutes. A session that was opened in time lasts two hours.", OpenPortal{TTLSeconds: 300, By: "ada@example.com"},
			PortalLink{Path: "/portal/#token_for_example", Action: "/portal/open", Token: "token_for_example", ExpiresAt: moment(5)}},
	}
}

func aSubscription() Subscription {
	return Subscription{ID: anySubscription, SubscriberID: anySubscriber, URL: "https://hooks.example.com/surehook", EventTypes: []string{"subscriber.*"}, Filter: json.RawMessage(`{"data.attributes.plan":"pro"}`), Order: "object", HoldTries: 3, RetryDelaysSeconds: []int64{}, Gone: "stop", Description: "to the CRM", Status: "active", CreatedAt: moment(0), LastSuccessAt: momentary(10)}
}

func aboutSubscriptions() map[string]words {
	tries := integer(3)
	paused := aSubscription()
	paused.Status = "paused"
	return map[string]words{
		"create-subscription": {
			"Registers a callback URL, which gets the events that are committed after it. The URL's form and any literal address are checked now, the address that is dialled at each attempt.",
			NewSubscription{URL: "https://hooks.example.com/surehook", EventTypes: []string{"subscriber.*"}, Filter: json.RawMessage(`{"data.attributes.plan":"pro"}`), Description: "to the CRM", Ordering: Ordering{Order: "object", HoldTries: &tries}, Failing: Failing{Gone: "stop"}}, aSubscription(),
		},
		"list-subscriptions":  {"Lists the subscriptions that are not deleted, without those that stand for the callback URLs of jobs, unless implicit asks for them.", nil, aPage(aSubscription())},
		"get-subscription":    {"Reads a subscription with its health and how much waits for it.", nil, aSubscription()},
		"change-subscription": {"Changes what is given. While a subscription is paused or disabled its deliveries are held, not dropped; resume says which of them are sent once it is active again. Another order holds for events that are published later; hold_tries, hold_for_seconds and hold_dead end with the order object.", SubscriptionChange{Status: "paused"}, paused},
		"delete-subscription": {"Ends a subscription. Its pending deliveries are cancelled, and its records stay readable until they are pruned.", nil, nil},
		"why-event": {
			"Says what became of an event for a subscription, or why it has no delivery to it: by the types and the filter that the subscription has now. A sentence about a filter shows a part of the event's data.", nil,
			EventWhy{EventID: anyEvent, SubscriptionID: anySubscription, Reason: "filtered", Why: `Not delivered: the subscription's filter does not match. data.attributes.plan = "pro" does not hold: it is "free".`},
		},
		"preview-filter": {
			"Counts how many of the newest stored events a filter would pass, before a subscription has it. It changes nothing, and looks at 200 events at most.",
			NewPreview{EventTypes: []string{"subscriber.*"}, Filter: json.RawMessage(`{"data.attributes.plan":"pro"}`), Events: 100},
			Previewed{Events: 100, Matching: 42, Since: momentary(0), More: true},
		},
		"test-subscription": {"Sends an event of the type webhook.test to this subscription alone, whatever types it asks for. It is refused unless the subscription is active.", nil, TestSent{anyEvent, anyDelivery}},
	}
}

func anEvent() Event {
	return Event{ID: anyEvent, Type: "order.paid", OccurredAt: momentary(0), Object: Object{"order", "1001"}, Version: 3, Data: json.RawMessage(`{"total":"12.50"}`)}
}

func aboutEvents() map[string]words {
	return map[string]words{
		"publish-event": {
			"Publishes an event for a service that has nothing but HTTP. It is durable once it is answered. Without a version it gets its object's next; without subscriber_id it goes to every subscription that asks for its type.",
			NewEvent{Type: "order.paid", Object: Object{"order", "1001"}, Data: json.RawMessage(`{"total":"12.50"}`), SubscriberID: anySubscriber}, PublishedEvent{anyEvent, 3},
		},
		"list-events": {
			"Lists the events that the caller may see, in the order in which they became visible: the operator all, a subscriber those that are addressed to it or to nobody in particular. Keep next_cursor: nothing that was committed is ever skipped. after=now begins at the end, with a page that is empty and has a cursor. wait holds an empty answer open.",
			nil, EventPage{Data: []Event{anEvent()}, NextCursor: "f1.1001"},
		},
		"get-event":         {"Reads an event and what became of it.", nil, EventRecord{Event: anEvent(), Deliveries: []Delivery{aDelivery()}}},
		"redact-object":     {"Removes the bodies of all events about an object, the headers of their attempts, and what endpoints answered to them. Events, versions and deliveries stay on record; none of these deliveries can be sent again. Results of exports that were made before keep what they have until they are removed.", NewRedaction{Object{"order", "1001"}}, Redacted{Events: 3}},
		"receive-event":     {"", Posted{ID: anyEvent, Type: "order.paid", OccurredAt: moment(0), Object: Object{"order", "1001"}, Version: 3, Data: json.RawMessage(`{"total":"12.50"}`)}, nil},
		"receive-challenge": {"", Posted{ID: anyEvent, Type: "webhook.challenge", OccurredAt: moment(0), Object: Object{"subscription", anySubscription}, Version: 1, Data: json.RawMessage(`{"token":"` + anyChallenge + `"}`)}, nil},
	}
}

func aDelivery() Delivery {
	return Delivery{
		ID: anyDelivery, Event: EventInfo{anyEvent, "order.paid", Object{"order", "1001"}, 3, moment(0)}, SubscriptionID: anySubscription, SubscriberID: anySubscriber,
		URL: "https://hooks.example.com/surehook", Status: "awaiting_retry", AttemptCount: 1, NextAttemptAt: momentary(1), LastErrorClass: "status",
	}
}

func aboutDeliveries() map[string]words {
	code, said, snippet := 503, "answered with 503", "down for maintenance"
	record := DeliveryRecord{
		Delivery: aDelivery(), Payload: `{"id":"` + anyEvent + `","type":"order.paid","occurred_at":"2026-01-02T15:04:05Z","object":{"type":"order","id":"1001"},"version":3,"data":{"total":"12.50"}}`,
		Attempts: []Attempt{{Number: 1, StartedAt: moment(0), DurationMS: 41, StatusCode: &code, Error: &said, ErrorClass: "status", ResponseSnippet: &snippet, RequestHeaders: []Header{{"Content-Type", "application/json"}, {"Webhook-Signature", "redacted"}}, ResponseHeaders: []Header{{"Retry-After", "60"}}, NextAttemptAt: momentary(1)}},
		Why:      "It waits for its next attempt, at 2026-01-02T15:05:05Z: the one before was answered with 503.",
	}
	passed := record
	passed.Status, passed.NextAttemptAt, passed.Why = "dead_lettered", nil, "Dead-lettered at 2026-01-02T15:05:05Z after 1 attempt over 0s; the last one failed: status, answered with 503. Redeliver it to start its schedule anew."
	again := record
	again.Status, again.NextAttemptAt, again.Why = "pending", momentary(0), "It is due now."
	return map[string]words{
		"list-deliveries": {"Lists what is on its way, was delivered or was given up, by any of the filters together. A page can be short before the end: the end is a next_cursor that is null.", nil, aPage(aDelivery())},
		"get-delivery":    {"Reads a delivery with the exact body that is posted, each attempt, and a sentence that says what it waits for.", nil, record},
		"pass-over":       {"Lets the later versions of an object go on that a dead letter holds back, because its subscription has hold_dead. It stays a dead letter, and can still be sent again.", nil, passed},
		"redeliver":       {"Sends a delivery again, with the same event id. One that is not delivered starts its schedule anew; of a delivered one it is a single attempt, whose failure leaves it delivered. A cancelled one is refused.", nil, again},
	}
}

func aboutJobs() map[string]words {
	queued := Job{ID: anyJob, Kind: "replay", Status: "queued", CallbackURL: "https://hooks.example.com/jobs", CreatedAt: moment(0)}
	done := queued
	done.Status, done.Progress, done.Result = "succeeded", &Progress{482, 482}, json.RawMessage(`{"matched":482,"replayed":482}`)
	done.StartedAt, done.FinishedAt = momentary(0), momentary(2)
	cancelled := queued
	cancelled.Status, cancelled.FinishedAt = "cancelled", momentary(1)
	return map[string]words{
		"submit-job": {
			"Accepts work that runs later. With a callback_url, job.completed is posted there when it ends, unless its submitter was deleted before. import_subscribers is for the operator; replay and export_events are about the caller's own.",
			NewJob{Kind: "replay", Input: json.RawMessage(`{"status":"dead_lettered","since":"2026-01-01T00:00:00Z"}`), CallbackURL: "https://hooks.example.com/jobs"}, queued,
		},
		"list-jobs":  {"Lists the jobs that the caller has submitted, the operator too.", nil, aPage(done)},
		"get-job":    {"Reads the truth about a job: its status, how far it has come, and what came of it.", nil, done},
		"cancel-job": {"Ends a job that has not ended. Its work so far stays done.", nil, cancelled},
		"get-export": {"Reads the events that a job has found, once it has succeeded. They are kept for as long as events are, and at most for 30 days.", nil, []Event{anEvent()}},
	}
}

func aboutNotices() map[string]words {
	id, delivery := anySubscription, anyDelivery
	notice := Notice{ID: anyNotice, Kind: "delivery.dead_lettered", SubscriberID: anySubscriber, SubscriptionID: &id, DeliveryID: &delivery, Detail: "it is not attempted any more: 6 attempts without a success, the last one: answered with 503", CreatedAt: moment(0)}
	read := notice
	read.AcknowledgedAt = momentary(5)
	return map[string]words{
		"list-notices":       {"Lists what the caller must learn: dead letters, subscriptions that are failing or were disabled, and replays that have ended. The operator also learns of the server's own network and proxies. Each is also an event, for the subscriptions that ask for its type, and never for the one that it is about.", nil, aPage(notice)},
		"acknowledge-notice": {"Marks a notice as read by somebody. It is removed some months later.", nil, read},
	}
}

func aboutService() map[string]words {
	ok := Health{Status: "ok", Version: "v1.0.0"}
	return map[string]words{
		"health":      {"Answers 200 once the database answers, and else 503: is it alive?", nil, ok},
		"ready":       {"Answers 200 once the tables fit this version and the database takes writes, and else 503: may it get requests?", nil, ok},
		"get-metrics": {"Figures of this process, and totals that are read from the database.", nil, "surehook_backlog_deliveries 0\n"},
	}
}
