package main_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/catalogue/shop"
)

func TestCatalogueDiff(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := operator(t, p)
		u.subscribe("http://127.0.0.1:9/broken", "invoice.*")
		u.subscribe("http://127.0.0.1:9/other", "order.*")
		types, err := shop.New()
		require.NoError(t, err)
		state, err := json.Marshal(types)
		require.NoError(t, err)
		u.write("deployed.json", string(state))
		u.write("next.json", strings.Replace(string(state), `"number":{"type":"string"`, `"number":{"type":"integer"`, 4)) // of order.*
		u.write("broken.json", strings.Replace(string(state), `"name":"invoice.paid"`, `"name":"invoice.settled"`, 1))

		require.Equal(t, "nothing that customers would see has changed\n", u.does("catalogue", "diff", "deployed.json", "deployed.json"))
		a := u.run("catalogue", "diff", "deployed.json", "next.json")
		require.Equal(t, 1, a.code, a.errs)
		require.Contains(t, a.out, "order.created, version 2025-03-01, /number: it was of type string, and is of type integer (pinned before 2026-11-01)")

		a = u.run("catalogue", "diff", "deployed.json", "broken.json", "-live", "-database", p.flag)
		require.Equal(t, 1, a.code, a.errs)
		require.Contains(t, a.out, "these break customers:\n  invoice.paid: the type is gone\nthese break nobody:\n  invoice.settled: the type is new")
		require.Contains(t, a.out, "http://127.0.0.1:9/broken")
		require.NotContains(t, a.out, "http://127.0.0.1:9/other")
		a = u.run("catalogue", "diff", "deployed.json", "broken.json", "-live", "-database", p.flag, "-json")
		require.Equal(t, 1, a.code, a.errs)
		var said struct {
			Changes       []struct{ Type string }
			Subscriptions []struct{ URL string }
		}
		require.NoError(t, json.Unmarshal([]byte(a.out), &said))
		require.Len(t, said.Changes, 2)
		require.Len(t, said.Subscriptions, 1)

		u.posts("/subscriptions", http.StatusCreated, map[string]any{"url": "http://127.0.0.1:9/filtered", "event_types": []string{"order.created"}, "filter": map[string]any{"data.number": "1"}})
		more := types.Types()
		for i := range more {
			more[i].Versions = append(more[i].Versions, catalogue.Version{Since: "2030-01-01"})
		}
		state, err = json.Marshal(map[string]any{"types": more})
		require.NoError(t, err)
		u.write("more.json", string(state))
		require.Contains(t, u.does("catalogue", "diff", "deployed.json", "more.json"), "these break nobody:\n")
		require.NotContains(t, u.does("catalogue", "diff", "deployed.json", "more.json", "-live", "-database", p.flag), "http://127.0.0.1:9/", "filters decide by the version that their subscription gets")
	})
	u := newUser(t)
	u.write("a.json", "{}")
	for want, args := range map[string][]string{
		"it is no state":  {"diff", "a.json", "a.json"},
		"no such file":    {"diff", "missing.json", "a.json"},
		"it is catalogue": {"show", "a.json", "a.json"},
		"it needs":        {"diff"},
		"with -live":      {"diff", "a.json", "a.json", "-database", "x.db"},
	} {
		a := u.run(append([]string{"catalogue"}, args...)...)
		require.Equal(t, 2, a.code, a.out)
		require.Contains(t, strings.Replace(a.errs, "this is no state", "it is no state", 1), want)
	}
}
