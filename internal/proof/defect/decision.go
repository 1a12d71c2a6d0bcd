package defect

var ofDecisions = []Defect{
	{
		Name: "Retry-After is not heeded",
		File: "backoff/policy.go", Tests: []string{"./backoff"},
		Old: "delay = max(delay, min(s.RetryAfter, p.MaxRetryAfter))\n", New: "",
	},
	{
		Name: "Retry-After is followed for as long as it says",
		File: "backoff/policy.go", Tests: []string{"./backoff"},
		Old: "min(s.RetryAfter, p.MaxRetryAfter)", New: "s.RetryAfter",
	},
	{
		Name: "a delay goes beyond the horizon",
		File: "backoff/policy.go", Tests: []string{"./backoff"},
		Old: "return min(delay, left), true", New: "return delay, true",
	},
	{
		Name: "the schedule starts anew with each attempt",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: "Attempt: l.Tries, Age:", New: "Attempt: 1, Age:",
	},
	{
		Name: "a body is converted anew at each attempt",
		File: "sender/dispatch/convert.go", Tests: []string{"./sender/dispatch"},
		Old: "x.c.Body, x.c.Converted = body, true", New: "x.c.Body, x.c.Converted = body, true\n\t\t\tif x.body != nil {\n\t\t\t\tx.c.Body = x.body\n\t\t\t}",
	},
	{
		Name: "a delivery goes out in the new version once its subscription has it",
		File: "sender/dispatch/convert.go", Tests: []string{"./sender/dispatch"},
		Old: "needed: c.Number > 1", New: "needed: false",
	},
	{
		Name: "a subscription goes back to an older version",
		File: "sender/settings_rules.go", Tests: []string{"./sender"},
		Old: "case asked < was:", New: "case asked < was && false:",
	},
	{
		Name: "a redelivery that fails makes a delivered one a dead letter",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: "r.Class == sender.ClassNone || l.Single && r.Class != sender.ClassInterrupted {", New: "r.Class == sender.ClassNone {",
	},
	{
		Name: "a redelivery ends with a process that was lost",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: "r.Class == sender.ClassNone || l.Single && r.Class != sender.ClassInterrupted {", New: "r.Class == sender.ClassNone || l.Single {",
	},
	{
		Name: "notices are raised about notices",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: " && !l.Notice {", New: " {",
	},
	{
		Name: "failures of notices' deliveries warn nobody",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: "if r.Class != sender.ClassInterrupted && !ours {", New: "if !l.Notice && r.Class != sender.ClassInterrupted && !ours {",
	},
	{
		Name: "a subscription is disabled as soon as its owner was warned",
		File: "sender/dispatch/disable.go", Tests: []string{"./sender/dispatch"},
		Old: "now.Sub(h.WarnedAt) >= chance", New: "true",
	},
	{
		Name: "a success does not end the streak",
		File: "sender/dispatch/health.go", Tests: []string{"./sender/dispatch"},
		Old: "h.Streak, h.FailingSince, h.Warned, h.WarnedAt = 0, time.Time{}, 0, time.Time{}\n", New: "",
	},
	{
		Name: "the first failure can disable",
		File: "sender/dispatch/disable.go", Tests: []string{"./sender/dispatch"},
		Old: " || h.Streak < disableStreak", New: "",
	},
	{
		Name: "an outage of our own network counts against the endpoints",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: "if r.OwnNetwork || r.ProxyFailed {", New: "if r.ProxyFailed {",
	},
	{
		Name: "a closed idle connection counts against the endpoint",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: "if spared(l.Spared, &r) {", New: "if spared(l.Spared, &r) && l.Number < 0 {",
	},
	{
		Name: "a schedule runs on while its delivery is put off",
		File: "sender/rules/takeback.go", Tests: []string{"./sender/rules"},
		Old: "if !due.IsZero() && !l.First.IsZero() {", New: "if !due.IsZero() && l.First.IsZero() {",
	},
	{
		Name: "closed idle connections are spared twice in a row",
		File: "sender/dispatch/spare.go", Tests: []string{"./sender/dispatch"},
		Old: "r.Class == sender.ClassReset && !before", New: "r.Class == sender.ClassReset && (!before || r.ClosedIdle)",
	},
}
