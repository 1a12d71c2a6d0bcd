package main_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTriggerTo(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.write("secret", "\ufeff"+secret+"\r\n") // as editors on Windows write it
	u.write("data.json", `{"boxes": 3}`)
	e := newEndpoint(t, 200, http.StatusTeapot)
	require.Contains(t, u.does("trigger", "invoice.paid", "-to", e.URL, "-secret-file", "secret"), "→ 200 in")
	a := u.run("trigger", "order.packed", "-object", "order/42", "-data-file", "data.json", "-version", "7", "-to", e.URL, "-secret-file", "secret", "-json")
	require.Equal(t, 1, a.code, a.errs)
	require.Contains(t, a.out, `"status_code":418`)

	got := e.received()
	require.Len(t, got, 2)
	for _, r := range got {
		verified(t, secret, r)
	}
	var sample, own map[string]any
	require.NoError(t, json.Unmarshal(got[0].body, &sample))
	require.NoError(t, json.Unmarshal(got[1].body, &own))
	require.Equal(t, map[string]any{"type": "invoice", "id": "in_1"}, sample["object"])
	require.Equal(t, "EUR", sample["data"].(map[string]any)["total"].(map[string]any)["currency"])
	require.Equal(t, map[string]any{"type": "order", "id": "42"}, own["object"])
	require.Equal(t, map[string]any{"boxes": 3.0}, own["data"])
	require.InDelta(t, 7, own["version"], 0)
}

func TestTriggerPublishes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := operator(t, p)
		var first, second struct{ Event struct{ Version int } }
		u.reads(&first, "trigger", "invoice.paid")
		u.reads(&second, "trigger", "invoice.paid", "-database", p.flag)
		require.Equal(t, 1, first.Event.Version)
		require.Equal(t, 2, second.Event.Version)
		for _, source := range [][]string{nil, {"-database", p.flag}} {
			a := u.run(append([]string{"trigger", "invoice.paid", "-version", "1"}, source...)...)
			require.Equal(t, 1, a.code, a.errs)
			require.Contains(t, a.errs, "version")
			a = u.run(append([]string{"trigger", "invoice.paid", "-subscriber", "sub_nobody"}, source...)...)
			require.Equal(t, 1, a.code, a.errs)
		}
	})
}

func TestTriggerRefuses(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	for _, test := range []struct {
		says string
		args []string
	}{
		{"which type?", nil},
		{`there is no sample of "a.b": give -object`, []string{"a.b"}},
		{`-object is "order": it must be like invoice/in_1`, []string{"a.b", "-object", "order"}},
		{"the data is not JSON", []string{"invoice.paid", "-data", "{"}},
		{"both -data and -data-file", []string{"invoice.paid", "-data", "1", "-data-file", "x"}},
		{"there is no token", []string{"invoice.paid"}},
		{"there is no secret to sign with", []string{"invoice.paid", "-to", "http://localhost/"}},
		{"nothing is published", []string{"invoice.paid", "-to", "http://localhost/", "-subscriber", "sub_a"}},
	} {
		a := u.run(append([]string{"trigger"}, test.args...)...)
		require.Equal(t, 2, a.code, "%v: %s", test.args, a.errs)
		require.Contains(t, a.errs, test.says)
	}
	require.Contains(t, u.does("trigger", "-list"), "invoice.payment_failed")
}
