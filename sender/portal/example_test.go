package portal_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/portal"
	"github.com/surehook/surehook/sender/replay"
)

// A portal under a prefix, and a page of the service that opens it in a frame.
func ExampleNew() {
	store, err := memory.New(nil)
	if err != nil {
		panic(err)
	}
	sealing, err := sender.NewKeys(sender.SealingKey{ID: "2026", Key: []byte("32 bytes of a secret that is kept")[:32]})
	if err != nil {
		panic(err)
	}
	registry, err := sender.NewRegistry(store, sealing, nil)
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
	key := make([]byte, 32) // a real program keeps it: all its processes have the same
	_, _ = rand.Read(key)
	pages, err := portal.New(portal.Backend{Registry: registry, History: history, Replays: replays}, [][]byte{key}, &portal.Config{
		Name: "Meridian Pay", Accent: "#0b7468", FrameAncestors: []string{"https://app.example.com"},
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/portal/", http.StripPrefix("/portal", pages))
	mux.HandleFunc("GET /settings/webhooks", func(w http.ResponseWriter, _ *http.Request) {
		customer := "sub_acme" // whom the service's own sign-in has found
		token, err := pages.Token(portal.Grant{Subscriber: customer, Name: "Acme Logistics"})
		if err != nil {
			http.Error(w, "try again", http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, `<iframe name="portal"></iframe><form method="post" target="portal" action="/portal/open"><input type="hidden" name="token" value="%s"></form>`, token)
	})

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/settings/webhooks", nil))
	_, token, _ := strings.Cut(w.Body.String(), `value="`)
	token, _, _ = strings.Cut(token, `"`)
	for _, token := range []string{"a guess", token} {
		r := httptest.NewRequest(http.MethodPost, "/portal/open", strings.NewReader(url.Values{"token": {token}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Location") != "")
	}
	// Output:
	// 401 false
	// 307 true
}
