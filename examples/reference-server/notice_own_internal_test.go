package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/filter"
)

func TestWithoutOwn(t *testing.T) {
	t.Parallel()
	const own = `"not":{"data.subscription_id":"wsub_1","object.type":{"prefix":"surehook."}}`
	about := func(subscription string) []byte {
		return []byte(`{"object":{"type":"surehook.delivery","id":"dlv_1"},"data":{"subscription_id":"` + subscription + `","a":1}}`)
	}
	named := []string{"order.paid", "delivery.dead_lettered"}
	for name, c := range map[string]struct {
		types       []string
		given, want string
	}{
		"no notice":               {[]string{"order.paid", "subscription.*", "*"}, "", ""},
		"no notice, and filter":   {[]string{"order.paid"}, `{ "data.a": 1 }`, `{ "data.a": 1 }`},
		"named":                   {named, "", "{" + own + "}"},
		"disabled":                {[]string{"subscription.disabled"}, "", "{" + own + "}"},
		"failing":                 {[]string{"subscription.failing"}, "", "{" + own + "}"},
		"a replay's end":          {[]string{"replay.finished"}, "", "{" + own + "}"},
		"with a filter":           {named, `{"data.a": 1}`, "{" + own + `,"data.a":1}`},
		"with or":                 {named, `{"or": [{"data.a": 1}, {"data.b": 1}]}`, "{" + own + `,"or":[{"data.a":1},{"data.b":1}]}`},
		"with a not of its own":   {named, `{"not": {"data.a": 2}}`, `{"and":[{` + own + `},{"not":{"data.a":2}}]}`},
		"again":                   {named, "{" + own + `,"data.a":1}`, "{" + own + `,"data.a":1}`},
		"again, in a list":        {named, `{"and":[{` + own + `},{"not":{"data.a":2}}]}`, `{"and":[{` + own + `},{"not":{"data.a":2}}]}`},
		"again, in another order": {named, `{"data.a":1,"not":{"object.type":{"prefix":"surehook."},"data.subscription_id":"wsub_1"}}`, `{"data.a":1,"not":{"object.type":{"prefix":"surehook."},"data.subscription_id":"wsub_1"}}`},
		"somewhere else":          {named, `{"or":[{` + own + `},{"data.a":1}]}`, "{" + own + `,"or":[{` + own + `},{"data.a":1}]}`},
		"of another":              {named, `{"not":{"object.type":{"prefix":"surehook."},"data.subscription_id":"wsub_2"}}`, `{"and":[{` + own + `},{"not":{"object.type":{"prefix":"surehook."},"data.subscription_id":"wsub_2"}}]}`},
		"not any more":            {[]string{"order.paid"}, "{" + own + "}", ""},
		"what cannot be parsed":   {named, `{"data.a": `, `{"data.a": `},
		"what is no filter":       {named, `{"a": 1}`, `{"a": 1}`},
		"null, which is none":     {named, "null", "null"},
		"an empty object's text":  {named, "{}", "{}"},
	} {
		got := withoutOwn("wsub_1", c.types, c.given)
		require.Equal(t, c.want, got, name)
		require.Equal(t, got, withoutOwn("wsub_1", c.types, got), "%s, once more", name)
		if f, err := filter.Parse([]byte(got)); err == nil && len(c.types) > 0 && c.want != c.given && c.want != "" {
			require.False(t, f.Match(about("wsub_1")), name)
			require.Equal(t, name != "of another", f.Match(about("wsub_2")), name)
		}
	}
}
