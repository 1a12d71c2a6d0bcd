package sender

import (
	"bytes"
	"testing"
	"time"
)

// Under one idempotency key two publishes agree if and only if all compared fields are the
// same.
func FuzzIdempotencyBinding(f *testing.F) {
	f.Add("a.b", "t", "1", "sub_a", "", "", int64(1), []byte(`{}`), uint8(0))
	f.Add("a", "1:b", "11:", "sub", "wsub", "https://x/", int64(0), []byte(nil), uint8(3))
	f.Add("", "", "", "", "", "", int64(-1), []byte{}, uint8(6))
	f.Fuzz(func(t *testing.T, eventType, objectType, object, subscriber, subscription, url string, version int64, data []byte, which uint8) {
		e := Event{Type: eventType, Object: Object{objectType, object}, Subscriber: subscriber, Subscription: subscription, URL: url, Version: version}
		same := e
		same.OccurredAt, same.IdempotencyKey = time.Unix(version, 0), "other"
		if e.hash(data) != same.hash(data) {
			t.Fatal("when it happened is a part of it")
		}
		for name, change := range map[string]func(e *Event){
			"type": func(e *Event) { e.Type += "x" }, "object's type": func(e *Event) { e.Object.Type += "x" }, "object": func(e *Event) { e.Object.ID += "x" },
			"subscriber": func(e *Event) { e.Subscriber += "x" }, "subscription": func(e *Event) { e.Subscription += "x" }, "URL": func(e *Event) { e.URL += "x" },
			"version": func(e *Event) { e.Version++ },
		} {
			other := e
			if change(&other); e.hash(data) == other.hash(data) {
				t.Fatalf("the %s is no part of it", name)
			}
		}
		if e.hash(data) == e.hash(append(bytes.Clone(data), 'x')) {
			t.Fatal("the data is no part of it")
		}
		// A byte moved from one field to the next makes another event.
		fields := []*string{&same.Type, &same.Object.Type, &same.Object.ID, &same.Subscriber, &same.Subscription, &same.URL}
		i := int(which) % (len(fields) - 1)
		if from, to := fields[i], fields[i+1]; *from != "" {
			last := len(*from) - 1
			*from, *to = (*from)[:last], (*from)[last:]+*to
			if e.hash(data) == same.hash(data) {
				t.Fatalf("%+v and %+v are the same", e, same)
			}
		}
	})
}
