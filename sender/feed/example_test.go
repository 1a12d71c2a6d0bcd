package feed_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/memory"
)

func ExampleNewHandler() {
	store, _ := memory.New(nil)
	reader, _ := feed.NewReader(store, nil)
	events, err := feed.NewHandler(reader, func(r *http.Request) (string, error) {
		if r.Header.Get("Authorization") != "Bearer operator-token" { // compare hashes in constant time
			return "", feed.ErrUnauthorized
		}
		return sender.Operator, nil
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("GET /events", events)
	mux.Handle("GET /events/{id}", events)

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/events", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 401 application/problem+json
}

func ExampleReader_Page() {
	ctx := context.Background()
	store, _ := memory.New(nil)
	pub, _ := sender.NewPublisher(store, nil)
	for _, id := range []string{"a", "b", "c"} {
		_, _ = pub.Publish(ctx, sender.Event{Type: "thing.made", Object: sender.Object{Type: "thing", ID: id}})
	}

	reader, _ := feed.NewReader(store, nil)
	q := feed.Query{Viewer: sender.Operator, Limit: 2}
	for {
		page, err := reader.Page(ctx, q)
		if err != nil || len(page.Events) == 0 {
			break
		}
		for _, e := range page.Events {
			fmt.Println(e.Type, e.Object.ID)
		}
		q.After = page.Next
	}
	// Output:
	// thing.made a
	// thing.made b
	// thing.made c
}
