package defect

var ofWire = []Defect{
	{
		Name: "two versions of an object are begun at a time",
		File: "sender/dispatch/slots_order.go", Tests: []string{"./sender/dispatch"}, Run: "Slots",
		Old: "\tif a.Number != 1 {\n\t\treturn false\n\t}\n", New: "\tif a != nil {\n\t\treturn false\n\t}\n",
	},
	{
		Name: "results are dropped that could not be recorded",
		File: "sender/dispatch/pump.go", Tests: []string{"./sender/dispatch"},
		Old: "p.done = append(done[:len(done):len(done)], p.done...)", New: "done = append(done[:len(done):len(done)], p.done...)",
	},
	{
		Name: "a long event is cut off once its endpoint has answered with success",
		File: "sender/internal/http1/exchange.go", Tests: []string{"./sender/internal/http1"}, Run: "^TestLongBody$",
		Old: "x.wanted = x.wrote != nil && ", New: "x.wanted = x.wrote != nil && x.ended != nil && ",
	},
	{
		Name: "a long event is cut off over HTTP/2 once its endpoint has answered with success",
		File: "sender/internal/http2/exchange.go", Tests: []string{"./sender/internal/http2"}, Run: "^TestAnswerBeforeTheBodyIsRead$",
		Old: "\tif x.sent == nil {\n\t\treturn io.EOF", New: "\tif x != nil {\n\t\treturn io.EOF",
	},
	{
		Name: "a long event is cut off once its endpoint has answered with success, and at length",
		File: "sender/internal/post/post.go", Tests: []string{"./sender/internal/post"}, Run: "^TestLongAnswerBeforeTheEventIsRead$",
		Old: "return early.Taken()", New: "_ = early",
	},
	{
		Name: "a request that was refused over HTTP/2 counts",
		File: "sender/internal/http2/exchange.go", Tests: []string{"./sender/internal/http2"}, Run: "^TestRefused$",
		Old: `case says(err, "REFUSED_STREAM", "graceful shutdown GOAWAY"):`, New: `case says(err, "REFUSED_STREAM, GOAWAY"):`,
	},
	{
		Name: "a proxy has all of the time for the first of a host's addresses",
		File: "sender/internal/post/tunnel.go", Tests: []string{"./sender/dispatch"}, Run: "^TestProxyThatReachesOneAddress$",
		Old: "ok && left > 1 {", New: "ok && left > 1<<20 {",
	},
	{
		Name: "a server over HTTP/2 may send without an end",
		File: "sender/internal/http2/meter.go", Tests: []string{"./sender/internal/http2"}, Run: "^TestServerThatSendsTooMuch$/^PING_after_an_answer$",
		Old: "if m.left.Load() <= 0 {", New: "if m.left.Load() <= -1<<62 {",
	},
	{
		Name: "the values of headers are stored as they are",
		File: "sender/subscribe.go", Tests: []string{"./sender"},
		Old: "\tr.keys.sealHeaders(s.ID, s.Settings.Headers)\n", New: "",
	},
	{
		Name: "the headers that are kept of an attempt have the values of the subscription's own",
		File: "sender/dispatch/kept_headers.go", Tests: []string{"./internal/proof/scenario"}, Run: "^TestNoSecretLeavesASender$/^sqlite$",
		Old: "\t\treturn redacted\n\t})\n\tb = append(b, '\\n')", New: "\t\treturn value\n\t})\n\tb = append(b, '\\n')",
	},
	{
		Name: "a secret that an endpoint sends back is kept among the answer's headers",
		File: "sender/dispatch/kept_headers.go", Tests: []string{"./sender/dispatch"}, Run: "^TestHeaders$",
		Old: "case !shownOfAnswer[name] || slices.ContainsFunc(secrets, echoes):", New: "case !shownOfAnswer[name] || slices.ContainsFunc(secrets[:0], echoes):",
	},
	{
		Name: "a redaction leaves the headers of attempts, on SQLite",
		File: "sender/sqlite/redact.go", Tests: []string{"./sender/sqlite"}, Run: store,
		Old: "SET snippet = NULL, headers = NULL", New: "SET snippet = NULL",
	},
	{
		Name: "a redirect is a success",
		File: "sender/internal/post/post.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "case answer.StatusCode >= 300 && answer.StatusCode < 400:", New: "case answer.StatusCode == 399:",
	},
	{
		Name: "an answer is read without an end",
		File: "sender/internal/post/post.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "for total := 0; total < maxAnswer; {", New: "for total := 0; total >= 0; {",
	},
	{
		Name: "an attempt may take for ever",
		File: "sender/internal/post/post.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "time.Now().Add(x.timeout)", New: "time.Now().Add(20*x.timeout)",
	},
	{
		Name: "a proxy's failure counts against the endpoint",
		File: "sender/internal/post/post.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "r.ProxyFailed = byProxy(err)\n", New: "r.ProxyFailed = byProxy(err) && x.timeout < 0\n",
	},
	{
		Name: "an endpoint that swallows all is taken for a proxy that hangs",
		File: "sender/internal/post/proxy_doubt.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "return p.heard.Load() == heard", New: "return p.heard.Load() >= heard",
	},
	{
		Name: "the dialled address is not looked at",
		File: "sender/internal/post/transport.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "if err := policy.Control(ctx, network, address, conn); err != nil {", New: "if err := policy.Control(ctx, network, address, conn); err != nil && address == \"\" {",
	},
	{
		Name: "a kept connection is not looked at",
		File: "sender/internal/http1/conn.go", Tests: []string{"./sender/internal/http1"},
		Old: "\tif cn.reader.Buffered() != 0 {\n\t\treturn false\n\t}", New: "\tif cn.made.Unix() != 0 {\n\t\treturn true\n\t}",
	},
	{
		Name: "a connection is used again after a 204 that announces a body",
		File: "sender/internal/http1/exchange.go", Tests: []string{"./sender/internal/http1"},
		Old: " && !announcesBody(answer)", New: "",
	},
	{
		Name: "a proxy is blamed for an endpoint that speaks first",
		File: "sender/internal/post/tunnel.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "case more && (answer.ContentLength > 0 || len(answer.TransferEncoding) > 0):", New: "case more && answer != nil:",
	},
	{
		Name: "a host that the proxy forbids holds up others",
		File: "sender/internal/post/proxy_watch.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "return w.failing(now) && w.host == \"\"", New: "return w.failing(now)",
	},
	{
		Name: "of a kept connection the socket alone is looked at, and not what TLS has read ahead",
		File: "sender/internal/http1/conn.go", Tests: []string{"./sender/internal/http1"},
		Old: "\tcase !cn.layers:\n", New: "\tdefault:\n",
	},
	{
		Name: "a kept connection is given up once the deadline of its last exchange has passed",
		File: "sender/internal/http1/conn.go", Tests: []string{"./sender/internal/http1"},
		Old: "if cn.SetReadDeadline(time.Time{}) != nil {", New: "if cn.made.Unix() == 0 {",
	},
	{
		Name: "an HTTP/2 server that reads nothing is waited for without an end",
		File: "sender/internal/http2/exchange.go", Tests: []string{"./sender/internal/http2"},
		Old: "_ = x.conn.network.Close()", New: "_ = x.conn",
	},
	{
		Name: "a request is sent again over HTTP/2 when TLS ends after it was sent",
		File: "sender/internal/post/protocol.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "!errors.Is(err, http1.ErrNotOffered)", New: "!http1.NotOffered(err)",
	},
	{
		Name: "a Keep-Alive header is not heeded",
		File: "sender/internal/http1/exchange.go", Tests: []string{"./sender/internal/http1"},
		Old: "x.conn.promised = promise(answer.Header)", New: "x.conn.promised = max(promise(answer.Header), time.Hour)",
	},
	{
		Name: "a new connection that breaks passes for one that was closed as idle",
		File: "sender/internal/http1/exchange.go", Tests: []string{"./sender/internal/http1"},
		Old: "if x.conn.used && !x.conn.began && ", New: "if !x.conn.began && ",
	},
	{
		Name: "an answer that breaks off passes for a connection that was closed as idle",
		File: "sender/internal/http1/exchange.go", Tests: []string{"./sender/internal/http1"},
		Old: "if x.conn.used && !x.conn.began && ", New: "if x.conn.used && ",
	},
	{
		Name: "a spared attempt is made on a connection that was used before",
		File: "sender/internal/post/post.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "if r.Anew {\n", New: "if r.Anew && r.Attempt == 0 {\n",
	},
	{
		Name: "an origin of HTTP/2 alone is asked for HTTP/1.1 each time",
		File: "sender/internal/post/protocol.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "\t\t\tc.origins.remember(to, true)\n", New: "\t\t\t_ = to\n",
	},
	{
		Name: "a connection that was being aborted is kept",
		File: "sender/internal/http1/exchange.go", Tests: []string{"./sender/internal/http1"},
		Old: "if !x.client.endings.remove(x) { // its context has ended\n\t\tkeep = false", New: "if !x.client.endings.remove(x) {\n\t\tkeep = err == io.EOF",
	},
	{
		Name: "a timeout is a success",
		File: "sender/internal/post/classify.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: `return sender.ClassTimeout, "no whole answer within the attempt's time"`, New: `return sender.ClassNone, ""`,
	},
	{
		Name: "an address embedded in an IPv6 one is not looked at",
		File: "internal/guard/addresses.go", Tests: []string{"./internal/guard"},
		Old: "case covered(lastFour, a):", New: "case covered(lastFour, a) && b[0] == 0xff:",
	},
	{
		Name: "an address may have a zone",
		File: "internal/guard/url.go", Tests: []string{"./internal/guard"},
		Old: `if a.Zone() != "" {`, New: `if a.Zone() == "none" {`,
	},
	{
		Name: "the lanes that are not proven take the whole of a claim",
		File: "sender/dispatch/pump.go", Tests: []string{"./sender/dispatch"}, Run: "TestBounds",
		Old: "min(p.Lanes[l].Slots, most/4)", New: "min(p.Lanes[l].Slots, most-slots)",
	},
	{
		Name: "bodies of busy endpoints take all memory from subscriptions on probation",
		File: "sender/dispatch/slots.go", Tests: []string{"./sender/dispatch"}, Run: "TestBodiesLeaveRoomForProbation",
		Old: "s.short%probationTurn == 0 &&", New: "s.short < 0 &&",
	},
	{
		Name: "a run that ends cuts its step off in the commit",
		File: "sender/dispatch/pump.go", Tests: []string{"./sender/dispatch"}, Run: "TestStop",
		Old: "working, cancel := context.WithCancel(context.WithoutCancel(ctx))", New: "working, cancel := context.WithCancel(ctx)",
	},
	{
		Name: "steps that new events cause keep no distance",
		File: "sender/dispatch/pace.go", Tests: []string{"./sender/dispatch"}, Run: "TestMaxDelay",
		Old: "if at := from.Add(p.d.cfg.MaxDelay); at.Before(until) {", New: "if at := from; at.Before(until) {",
	},
	{
		Name: "events that come about a long delay apart each make a step",
		File: "sender/dispatch/pace.go", Tests: []string{"./sender/dispatch"}, Run: "TestMaxDelay",
		Old: "return most > defaultMaxDelay && now", New: "return most < defaultMaxDelay && now",
	},
	{
		Name: "results are recorded at once though everything due was claimed",
		File: "sender/dispatch/pace.go", Tests: []string{"./sender/dispatch"}, Run: "TestResults",
		Old: "case p.pace.caughtUp && !p.keptBack && !p.toTheEnd:", New: "case p.pace.caughtUp && p.keptBack && !p.toTheEnd:",
	},
	{
		Name: "a process begins attempts although others may have taken them over",
		File: "sender/dispatch/presence.go", Tests: []string{"./sender/sqlite"}, Run: "TestStoppedIsTakenOver",
		Old: "return !asked.Before(x.since) && now.Sub(x.beaten) <= beatStale", New: "return !asked.Before(x.since)",
	},
	{
		Name: "a process is taken for gone after too few looks",
		File: "sender/dispatch/presence.go", Tests: []string{"./sender/dispatch"}, Run: "TestWatch",
		Old: "if s.looks >= goneLooks && asked.Sub(s.at) >= goneAfter {", New: "if asked.Sub(s.at) >= goneAfter {",
	},
	{
		Name: "what a commit claimed whose answer was lost is left to its lease",
		File: "sender/dispatch/doubt.go", Tests: []string{"./sender/dispatch"}, Run: "TestClaimWhoseAnswerWasLost",
		Old: "x.doubts = append(x.doubts, doubt{token, x.p.d.now().Add(x.p.d.cfg.Lease)})", New: "x.doubts = nil",
	},
	{
		Name: "a replay of a subscriber passes over what comes between others' deliveries",
		File: "sender/rules/merge.go", Tests: []string{"./sender/rules"}, Run: "TestMerge",
		Old: "for len(bound) > 0 && compare(merged[n-1], bound[0]) > 0 {", New: "for false {",
	},
	{
		Name: "an object is forgotten although something was published about it",
		File: "sender/postgres/prune_object.go", Tests: []string{"./sender/postgres"}, Run: "TestForgettingBesideAPublish",
		Old: "WHERE x.ctid = o.at AND o.same", New: "WHERE x.ctid = o.at",
	},
	{
		Name: "versions begin anew once an object is forgotten",
		File: "sender/sqlite/prune_object.go", Tests: []string{"./sender/sqlite"}, Run: "TestStore",
		Old: "return w.execs(liftFloor, floor)", New: "return nil",
	},
	{
		Name: "a replay is pruned although it is only paused",
		File: "sender/sqlite/replay.go", Tests: []string{"./sender/sqlite"}, Run: "TestStore/immediate/retention/ended_replays",
		Old: "if r.Status != replay.Running && r.Status != replay.Paused {", New: "if r.Status != replay.Running {",
	},
	{
		Name: "a filter is asked whatever an event is addressed to",
		File: "sender/rules/filter.go", Tests: []string{"./sender/storetest"}, Run: "TestSuite/filter",
		Old: "if addressed || a.Filter == nil {", New: "if a.Filter == nil {",
	},
	{
		Name: "large numbers of a filter are compared as if they were rounded",
		File: "sender/filter/number.go", Tests: []string{"./sender/filter"}, Run: "TestMatch",
		Old: "for i < len(n.digits) || j < len(m.digits) {", New: "for i < min(15, len(n.digits)) || j < min(15, len(m.digits)) {",
	},
	{
		Name: "what an old filter decided counts after it was changed",
		File: "sender/sqlite/filter.go", Tests: []string{"./sender/sqlite"}, Run: "TestLargeBodiesAreReadBefore",
		Old: "ok && known.asked.Equal(sub.asked) {", New: "ok {",
	},
	{
		Name: "events whose bodies are left to the next expansion are lost",
		File: "sender/postgres/expand.go", Tests: []string{"./sender/postgres"}, Run: "TestStore/.*/filter",
		Old: "for i := range candidates[:e.unread] {", New: "for i := range candidates {",
	},
	{
		Name: "an event's own URL of another origin gets the headers of its subscription",
		File: "sender/dispatch/wire.go", Tests: []string{"./sender/dispatch"}, Run: "^TestEventsOwnURLIsOfTheSubscriptionsOrigin$",
		Old: "a.elsewhere = u != nil && a.url != nil && !sameOrigin(a.url, u)", New: "a.elsewhere = u == nil && a.url != nil",
	},
	{
		Name: "another port is the same origin",
		File: "sender/dispatch/origin.go", Tests: []string{"./sender/dispatch"}, Run: "^TestEventsOwnURLIsOfTheSubscriptionsOrigin$",
		Old: " && port(a) == port(b)", New: "",
	},
	{
		Name: "a kind of record that cannot be removed keeps those behind it",
		File: "sender/rules/prune_pass.go", Tests: []string{"./sender/rules"}, Run: "^TestPruneFails$",
		Old: "\t\t\tp.next()\n\t\t\tvar out", New: "\t\t\tvar out",
	},
	{
		Name: "the registry's check of the retention leaves out the horizon",
		File: "sender/retention.go", Tests: []string{"./sender"}, Run: "^TestRetentionProblems$",
		Old: "dedup.CheckRetention(r.Receivers, r.Reach, horizon)", New: "dedup.CheckRetention(r.Receivers, r.Reach, 0)",
	},
}
