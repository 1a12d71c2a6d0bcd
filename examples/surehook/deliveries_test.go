package main_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type listed struct {
	Data []struct {
		ID, Status     string
		LastErrorClass string `json:"last_error_class"`
		AttemptCount   int    `json:"attempt_count"`
		Event          struct{ Type string }
	}
	NextCursor *string `json:"next_cursor"`
}

// dead waits for n dead letters.
func (u *user) dead(n int) listed {
	u.t.Helper()
	return eventually(u.t, "dead letters", func() (l listed) {
		u.reads(&l, "deliveries", "-status", "dead_lettered")
		return l
	}, func(l listed) bool { return len(l.Data) == n })
}

// The server and its database answer alike what became of deliveries.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := operator(t, p)
		e := newEndpoint(t)
		e.answers(http.StatusTeapot)
		u.subscribe(e.URL, "invoice.*")
		u.subscribe(newEndpoint(t).URL, "order.created")
		u.does("trigger", "invoice.paid")
		id := u.dead(1).Data[0].ID
		u.does("trigger", "order.created")
		eventually(t, "a delivery", func() string { return u.does("deliveries", "-status", "delivered") }, func(s string) bool { return strings.Contains(s, "order.created") })

		stored := []string{"-database", p.flag}
		same := func(args ...string) (out string) {
			t.Helper()
			out = u.does(args...)
			require.Equal(t, out, u.does(append(args, stored...)...), "%v", args)
			return out
		}
		require.Equal(t, 3, strings.Count(same("deliveries"), "\n"))
		for _, one := range [][]string{
			{"-type", "invoice.*"}, {"-status", "dead_lettered"}, {"-since", "1h", "-type", "invoice.paid"}, {"-class", "status", "-status", "dead_lettered"}, {"-code", "418"},
		} {
			out := same(append([]string{"deliveries"}, one...)...)
			require.Contains(t, out, id, "%v", one)
			require.NotContains(t, out, "order.created", "%v", one)
		}
		for _, none := range [][]string{{"-until", "1h"}, {"-type", "a.b"}, {"-event", "evt_nope"}, {"-subscription", "wsub_nope"}, {"-code", "500"}} {
			require.True(t, strings.HasPrefix(same(append([]string{"deliveries"}, none...)...), "there are none\n"), "%v", none)
		}
		for _, source := range [][]string{nil, stored} { // their cursors differ
			var first, second listed
			u.reads(&first, append([]string{"deliveries", "-limit", "1"}, source...)...)
			require.Len(t, first.Data, 1)
			u.reads(&second, append([]string{"deliveries", "-cursor", *first.NextCursor}, source...)...)
			require.Len(t, second.Data, 1)
			require.Equal(t, id, second.Data[0].ID)
		}

		object := append([]string{"deliveries", "-object", "invoice/in_1"}, stored...)
		require.Contains(t, u.does(object...), id)
		require.NotContains(t, u.does(object...), "order.created")

		why := same("why", id, "-body")
		require.Contains(t, why, "dead_lettered: Dead-lettered at ")
		require.Contains(t, why, "status: answered 418")
		require.Contains(t, why, `"currency":"EUR"`)
		headers := same("why", id, "-headers")
		require.Contains(t, headers, "  > Webhook-Signature: redacted\n")
		require.Contains(t, headers, "  < Content-Length: 0\n")
		record, err := json.Marshal(u.gets("/deliveries/" + id))
		require.NoError(t, err)
		for _, source := range [][]string{nil, stored} {
			require.JSONEq(t, string(record), u.does(append([]string{"why", id, "-json"}, source...)...))
		}

		e.answers(http.StatusOK)
		for _, source := range [][]string{nil, stored} {
			before := len(e.received())
			require.Contains(t, u.does(append([]string{"redeliver", id}, source...)...), "is due again")
			eventually(t, "its end", func() string { return u.does("why", id) }, func(s string) bool {
				return strings.HasPrefix(s, "delivered: ") && len(e.received()) == before+1
			})
			a := u.run(append([]string{"redeliver", "dlv_nope", "-json"}, source...)...)
			require.Equal(t, 1, a.code)
			require.Contains(t, a.out, `"redelivered":false`)
			a = u.run(append([]string{"why", "dlv_nope"}, source...)...)
			require.Equal(t, 1, a.code)
			require.Contains(t, a.errs, "there is no such delivery")
		}
	})
}

// A notice is listed until it is acknowledged, by its id or with all of its kind.
func TestNotices(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := operator(t, p)
		e := newEndpoint(t)
		e.answers(http.StatusTeapot)
		u.subscribe(e.URL, "invoice.*")
		for i, source := range [][]string{nil, {"-database", p.flag}} {
			with := func(args ...string) []string { return append(args, source...) }
			var list struct {
				Data []notice
				More bool
			}
			u.reads(&list, with("notices")...)
			require.Empty(t, list.Data)
			u.does("trigger", "invoice.paid")
			u.does("trigger", "invoice.payment_failed")
			dead := u.dead(2*i + 2).Data[0]
			said := u.does(with("notices")...)
			require.Regexp(t, `(?m)^\S+ \S+ +delivery\.dead_lettered +sub_operator +`+dead.ID+` +it is not attempted any more: .* ntc_\S+$`, said)
			require.Equal(t, 3, strings.Count(said, "\n"))
			require.Contains(t, u.does(with("notices", "-limit", "1")...), "there are more")
			u.reads(&list, with("notices", "-limit", "1")...)
			require.True(t, list.More)

			require.Contains(t, u.does(with("acknowledge", list.Data[0].ID)...), "acknowledged: 1")
			require.Equal(t, 2, u.run(with("acknowledge")...).code)
			require.Equal(t, 2, u.run(with("acknowledge", "ntc_nope", "-all")...).code)
			require.Equal(t, 2, u.run(with("acknowledge", "-all", "-kind", "nonsense")...).code)
			require.Contains(t, u.does(with("acknowledge", "-all", "-kind", "subscription.failing")...), "acknowledged: 0")
			require.Contains(t, u.does(with("acknowledge", "-all", "-kind", "delivery.dead_lettered")...), "acknowledged: 1")
			require.Contains(t, u.does(with("notices")...), "there are none")
			require.Contains(t, u.does(with("notices", "-acknowledged")...), list.Data[0].ID)
			a := u.run(with("acknowledge", "ntc_nope")...)
			require.Equal(t, 1, a.code)
			require.Contains(t, a.errs, "no such notice")
		}
	})
}

type notice struct{ ID, Kind string }

// A customer knows the id of an event, and not those of its deliveries.
func TestWhyOfAnEvent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := operator(t, p)
		u.subscribe(newEndpoint(t).URL, "invoice.*")
		u.subscribe(newEndpoint(t).URL, "refund.*")
		publish := func(eventType string) string {
			var made struct{ Event struct{ ID string } }
			u.reads(&made, "trigger", eventType)
			return made.Event.ID
		}
		sent, unwanted := publish("invoice.paid"), publish("order.created")
		for _, source := range [][]string{nil, {"-database", p.flag}} {
			why := func(id string) string { return u.does(append([]string{"why", id}, source...)...) }
			said := eventually(t, "a delivery", func() string { return why(sent) }, func(s string) bool { return strings.Contains(s, "  delivered: ") })
			require.Contains(t, said, "event "+sent+": invoice.paid invoice/in_1, version 1")
			require.Regexp(t, `(?m)^dlv_\S+ to http://\S+ of sub_operator\n  delivered: Delivered at `, said)
			require.Contains(t, said, "the subscription does not ask for the type invoice.paid; it asks for refund.*.", "of another endpoint of the same owner")

			said = why(unwanted)
			require.Contains(t, said, "it has no delivery\n")
			require.Contains(t, said, "the subscription does not ask for the type order.created; it asks for invoice.*.")

			about := u.run(append([]string{"why", "invoice/in_1"}, source...)...)
			if source == nil {
				require.NotZero(t, about.code)
				require.Contains(t, about.errs, "is asked of a -database")
			} else {
				require.Equal(t, why(sent), about.out, "the only event about it")
				require.Contains(t, u.run(append([]string{"why", "invoice/nope"}, source...)...).errs, "there is no event about invoice/nope")
				require.Contains(t, u.run(append([]string{"why", "invoice/"}, source...)...).errs, "it must be like invoice/in_1")
			}

			a := u.run(append([]string{"why", "evt_nope"}, source...)...)
			require.Equal(t, 1, a.code)
			require.Contains(t, a.errs, "event")
			var report struct {
				Event      struct{ ID string }
				Deliveries []struct{ Status string }
				NoDelivery []struct{ Why string } `json:"no_delivery"`
			}
			u.reads(&report, append([]string{"why", sent}, source...)...)
			require.Equal(t, sent, report.Event.ID)
			require.Len(t, report.Deliveries, 1)
			require.Len(t, report.NoDelivery, 1, "the subscription with a delivery is not named again")
		}
		u.posts("/redactions", http.StatusOK, map[string]any{"object": map[string]string{"type": "invoice", "id": "in_1"}})
		for _, source := range [][]string{nil, {"-database", p.flag}} {
			var l listed
			u.reads(&l, append([]string{"deliveries", "-event", sent}, source...)...)
			require.Contains(t, u.does(append([]string{"why", l.Data[0].ID, "-body"}, source...)...), "the body was removed")
		}
	})
}

// A subscription that is disabled or paused is found, and resumed. Until then nothing says that
// something is sent to it.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := operator(t, p)
		e := newEndpoint(t)
		u.subscribe(newEndpoint(t).URL, "order.created")
		id := u.posts("/subscriptions", http.StatusCreated, map[string]any{"url": e.URL, "event_types": []string{"invoice.*"}})["id"].(string)
		for _, source := range [][]string{nil, {"-database", p.flag}} {
			with := func(args ...string) []string { return append(args, source...) }
			require.Contains(t, u.does(with("subscriptions", "-status", "paused")...), "there are none")
			require.Equal(t, 1, u.run(with("pause", "wsub_nope")...).code)
			require.Contains(t, u.does(with("pause", id)...), id+" is paused")
			u.does("trigger", "invoice.paid")
			held := eventually(t, "a held delivery", func() (l listed) {
				u.reads(&l, "deliveries", "-status", "held")
				return l
			}, func(l listed) bool { return len(l.Data) == 1 }).Data[0].ID

			said := u.does(with("redeliver", held)...)
			require.Contains(t, said, held+" is not sent yet. Held: its subscription was paused")
			require.Contains(t, u.does(with("redeliver", held, "-json")...), `"held":"Held: `)
			require.Equal(t, "warn", u.doctor("-database", p.flag).of("held"))

			lines := strings.Split(u.does(with("subscriptions")...), "\n")
			require.Regexp(t, `^paused +- +1 +0 +sub_operator +`+e.URL+` +`+id+`$`, lines[1], "it comes first")
			require.Contains(t, lines[2], "active")
			var list struct{ Data []struct{ ID, Status string } }
			u.reads(&list, with("subscriptions", "-limit", "1")...)
			require.Len(t, list.Data, 1)
			require.Equal(t, "paused", list.Data[0].Status)

			require.Equal(t, 2, u.run(with("resume", id, "-none", "-since", "1h")...).code)
			require.Equal(t, 1, u.run(with("resume", "wsub_nope")...).code)
			require.Contains(t, u.does(with("resume", id)...), id+" is active")
			eventually(t, "its delivery", func() string { return u.does("why", held) }, func(s string) bool { return strings.HasPrefix(s, "delivered: ") })
			require.Empty(t, u.doctor("-database", p.flag).of("held"))
		}
		u.calls(http.MethodPatch, "/subscriptions/"+id, http.StatusOK, []byte(`{"status":"paused"}`))
		u.does("trigger", "invoice.voided")
		u.does("resume", id, "-none", "-database", p.flag)
		eventually(t, "the end of what is not sent", func() string { return u.does("deliveries", "-type", "invoice.voided") }, func(s string) bool {
			return strings.Contains(s, "cancelled") || strings.Contains(s, "there are none")
		})
	})
}

func TestReplay(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := operator(t, p)
		e := newEndpoint(t)
		u.subscribe(e.URL, "invoice.paid")
		for i, source := range [][]string{nil, {"-database", p.flag}} {
			e.answers(http.StatusInternalServerError)
			u.does("trigger", "invoice.paid")
			u.does("trigger", "invoice.paid")
			u.dead(2)
			e.answers(http.StatusOK)

			replay := append([]string{"replay", "-type", "invoice.*"}, source...)
			require.Contains(t, u.does(append(replay, "-dry-run")...), "2 dead-lettered deliveries match\n")
			a := u.run(replay...)
			require.Equal(t, 2, a.code)
			require.Contains(t, a.errs, "nothing was sent: give -yes")
			require.Contains(t, u.does(append(replay, "-until", "24h")...), "0 dead-lettered deliveries match\n")
			require.Contains(t, u.does(append(replay, "-class", "timeout")...), "0 dead-lettered deliveries match\n")
			require.Contains(t, u.does(append(replay, "-code", "501")...), "0 dead-lettered deliveries match\n")
			require.Contains(t, u.does(append(replay, "-class", "status", "-code", "500", "-subscriber", "sub_operator", "-dry-run")...), "2 dead-lettered deliveries match\n")
			u.dead(2)

			lines := strings.Split(strings.TrimSpace(u.does(append(replay, "-yes", "-json")...)), "\n")
			require.Len(t, lines, 3, "what matches, its beginning, its end")
			var end struct {
				ID, Status       string
				Matched, Skipped int
				Replayed         int `json:"replayed"`
			}
			require.NoError(t, json.Unmarshal([]byte(lines[2]), &end))
			require.Equal(t, "finished", end.Status)
			require.Equal(t, []int{2, 2, 0}, []int{end.Matched, end.Replayed, end.Skipped})
			eventually(t, "all delivered", func() (l listed) {
				u.reads(&l, "deliveries", "-status", "delivered")
				return l
			}, func(l listed) bool { return len(l.Data) == 2*(i+1) })

			require.Contains(t, u.does(append([]string{"replay", "-follow", end.ID}, source...)...), "finished: 2 of 2 sent again")
			a = u.run(append([]string{"replay", "-cancel", end.ID}, source...)...)
			require.Equal(t, 1, a.code, "it has ended")
			a = u.run(append([]string{"replay", "-follow", "nope"}, source...)...)
			require.Equal(t, 1, a.code, a.errs)
			a = u.run(append([]string{"replay", "-subscription", "wsub_nope"}, source...)...)
			require.Equal(t, 1, a.code)
			require.Contains(t, a.errs, map[bool]string{true: "there is no such subscription\n", false: `surehook replay: not found: subscription "wsub_nope"`}[source == nil])
		}
		other := u.submit("export_events", map[string]any{})
		for _, does := range []string{"-follow", "-cancel"} {
			a := u.run("replay", does, other)
			require.Equal(t, 1, a.code)
			require.Contains(t, a.errs, "is a job of the kind export_events, and no replay")
		}
	})
}

// A replay goes on when the command is interrupted, and can be cancelled later.
func TestReplayIsInterrupted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := operator(t, p)
		e := newEndpoint(t)
		e.answers(http.StatusInternalServerError)
		u.subscribe(e.URL, "invoice.paid")
		for _, source := range [][]string{nil, {"-database", p.flag}} {
			for range 3 {
				u.does("trigger", "invoice.paid")
			}
			// One is sent at once, and 100 s later the next.
			eventually(t, "dead letters", func() (l listed) {
				u.reads(&l, "deliveries", "-status", "dead_lettered")
				return l
			}, func(l listed) bool { return len(l.Data) >= 3 })
			r := launch(t, u.command(append([]string{"replay", "-yes", "-rate", "0.01", "-json"}, source...)...))
			r.says(t, `"status":"running"`)
			said, code := r.interrupt(t)
			require.Equal(t, 1, code, said)
			_, id, _ := strings.Cut(said, "-cancel ")
			id, _, _ = strings.Cut(id, " ")
			require.Contains(t, u.does(append([]string{"replay", "-cancel", id}, source...)...), "cancelled: ")
		}
	})
}

func TestDeliveriesRefuse(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.write("secret", secret)
	u.write("not.db", "this is no database, and long enough for one to be looked for in it")
	for _, test := range []struct {
		code int
		says string
		args []string
	}{
		{2, "there is no flag -stauts: did you mean -status?", []string{"deliveries", "-stauts", "held"}},
		{2, "there is no flag -token: did you mean -token-file?", []string{"deliveries", "-token", operatorToken}},
		{2, `"held" is one argument too many`, []string{"deliveries", "held"}},
		{2, "-limit is 0", []string{"deliveries", "-limit", "0"}},
		{2, "must be a time such as", []string{"deliveries", "-since", "yesterday"}},
		{2, "there is no file nowhere.db", []string{"deliveries", "-database", "nowhere.db"}},
		{2, "there is no file nowhere.db: give the one that the service works with, or say which tables a new one is to have: -sets sender", []string{"migrate", "up", "-database", "nowhere.db"}},
		{2, "cannot be read as an SQLite database", []string{"deliveries", "-database", "not.db"}},
		{2, "both a server", []string{"deliveries", "-database", "x.db", "-server", "http://localhost"}},
		{2, "-schema is for a -database", []string{"deliveries", "-schema", "hooks", "-server", "http://localhost", "-token-file", "not.db"}},
		{2, "-secret-key-file is for a -database", []string{"doctor", "-secret-key-file", "secret", "-server", "http://localhost", "-token-file", "not.db"}},
		{2, "-schema is for PostgreSQL", []string{"deliveries", "-database", "x.db", "-schema", "hooks"}},
		{2, "PostgreSQL does not answer", []string{"deliveries", "-database", "postgres://u:pass-word@127.0.0.1:1/x"}},
		{2, "PostgreSQL does not answer", []string{"deliveries", "-database", "host=127.0.0.1 port=1 user=u password=pass-word dbname=x"}},
		{2, "URL is not one that PostgreSQL understands", []string{"deliveries", "-database", "postgres://u:pass-word@h:port/x"}},
		{2, "the files that it names must be there", []string{"deliveries", "-database", "sslrootcert=/nowhere/ca.pem host=127.0.0.1 port=1 user=u password=pass-word dbname=x"}},
		{2, "PostgreSQL does not answer", []string{"deliveries", "-database", "pool_max_conns=2 host=127.0.0.1 port=1 user=u password=pass-word dbname=x"}},
		{2, "an SQLite file of such a name is ./NAME", []string{"deliveries", "-database", "Password=pass-word port=one"}},
		{2, "there is no file ./a=b.db", []string{"deliveries", "-database", "./a=b.db"}},
		{2, "URL that begins with postgres://", []string{"deliveries", "-database", "mysql://u:pass-word@h/x"}},
		{2, "it needs ID", []string{"why"}},
		{2, "-rate is -1", []string{"replay", "-rate", "-1"}},
		{2, "-rate is +Inf", []string{"replay", "-rate", "inf"}},
		{2, "both -follow and -cancel", []string{"replay", "-follow", "a", "-cancel", "b"}},
		{2, "leave out -dry-run", []string{"replay", "-cancel", "a", "-dry-run"}},
		{2, "what selects deliveries", []string{"replay", "-follow", "a", "-class", "dns"}},
		{2, "-force is for the operator", []string{"replay", "-force", "-server", "http://localhost", "-token-file", "not.db"}},
		{2, "-dir is for surehook migrate print", []string{"migrate", "up", "-dir", "x", "-database", "not.db"}},
		{2, "-sets has sender twice", []string{"migrate", "status", "-sets", "sender, sender", "-database", "not.db"}},
		{2, "-schema is for PostgreSQL", []string{"migrate", "print", "-sets", "sender", "-dialect", "sqlite", "-schema", "hooks"}},
		{2, `-dialect is "mysql"`, []string{"migrate", "print", "-sets", "sender", "-dialect", "mysql", "-database", "not.db"}},
		{1, "the event is invalid", []string{"trigger", "no type", "-object", "a/1", "-to", "http://127.0.0.1:1/", "-secret-file", "secret"}},
		{2, `there is no command "delivreies": did you mean deliveries?`, []string{"delivreies"}},
		{2, "usage: surehook COMMAND", nil},
	} {
		begun := time.Now()
		a := u.run(test.args...)
		require.Equal(t, test.code, a.code, "%v: %s", test.args, a.errs)
		require.Contains(t, a.errs, test.says, "%v after %v", test.args, time.Since(begun))
		require.Empty(t, a.out)
	}
	require.Equal(t, u.does("replay", "-h"), u.does("help", "replay"))
	u.env = []string{"SUREHOOK_DATABASE=a.db", "SUREHOOK_SERVER=http://localhost"}
	require.Contains(t, u.run("deliveries").errs, "are both set")
}

// A sample in a database says no version of its data: the service's own catalogue may not have
// the sample's, and what is pinned to an older one would wait for it for ever.
func TestTriggerInADatabase(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := operator(t, p)
		e := newEndpoint(t)
		u.subscribe(e.URL, "invoice.*")
		for i, one := range []struct{ flags, version string }{{"", ""}, {"-payload-version=2026-11-01", "2026-11-01"}} {
			u.does(slices.DeleteFunc([]string{"trigger", "invoice.paid", "-database", p.flag, one.flags}, func(s string) bool { return s == "" })...)
			got := eventually(t, "a delivery", e.received, func(all []received) bool { return len(all) == i+1 })
			var body struct {
				Version string `json:"payload_version"`
			}
			require.NoError(t, json.Unmarshal(got[i].body, &body))
			require.Equal(t, one.version, body.Version)
		}
		require.Contains(t, u.run("trigger", "invoice.paid", "-payload-version", "2026-11-25").errs, "a server goes by its own catalogue")
		require.Contains(t, u.run("trigger", "invoice.paid", "-database", p.flag, "-payload-version", "today").errs, `payload version is "today"`)
	})
}

// A database in which the library has nothing says so.
func TestDatabaseWithoutTables(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := newUser(t)
		_, err := p.open(t).Exec("CREATE TABLE orders (id INTEGER)")
		require.NoError(t, err)
		for _, args := range [][]string{{"deliveries"}, {"replay"}} {
			a := u.run(append(args, "-database", p.flag)...)
			require.Equal(t, 1, a.code, "%v: %s", args, a.errs)
			require.Contains(t, a.errs, "surehook migrate status", "%v", args)
		}
	})
}
