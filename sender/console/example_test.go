package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/console"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/replay"
)

// A console under a prefix, for visitors who have signed in to the program.
func ExampleNew() {
	store, err := memory.New(nil)
	if err != nil {
		panic(err)
	}
	keys, err := sender.NewKeys(sender.SealingKey{ID: "2026", Key: []byte("32 bytes of a secret that is kept")[:32]})
	if err != nil {
		panic(err)
	}
	registry, err := sender.NewRegistry(store, keys, nil)
	if err != nil {
		panic(err)
	}
	history, err := history.New(store, nil)
	if err != nil {
		panic(err)
	}
	replays, err := replay.New(store, nil)
	if err != nil {
		panic(err)
	}
	authorize := func(w http.ResponseWriter, r *http.Request) (string, bool) {
		user, password, _ := r.BasicAuth()
		if user != "grace" || password != "hopper" { // a real program checks its own sign-in
			w.Header().Set("WWW-Authenticate", `Basic realm="console"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return "", false
		}
		return user, true
	}
	pages, err := console.New(console.Backend{Registry: registry, History: history, Replays: replays}, authorize, nil)
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/ops/", http.StripPrefix("/ops", pages))

	for _, password := range []string{"guess", "hopper"} {
		r := httptest.NewRequest(http.MethodGet, "/ops/", nil)
		r.SetBasicAuth("grace", password)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.Contains(w.Body.String(), "<h1>Welcome to Surehook</h1>"))
	}
	// Output:
	// 401 false
	// 200 true
}
