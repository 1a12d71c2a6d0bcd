package defect

// ofOwnPolicies are defects in what subscriptions decide about their own failures.
var ofOwnPolicies = []Defect{
	{
		Name: "the delivery that was answered with 410, and so stops its subscription, is given up",
		File: "sender/dispatch/own_policy.go", Tests: []string{"./sender/dispatch"}, Run: "^TestGoneStopsOverTheWire$",
		Old: "if d.Status == sender.StatusDeadLettered {", New: "if d.Status == sender.StatusDeadLettered && now.IsZero() {",
	},
	{
		Name: "a subscription that is closing, and is answered with 410, never ends",
		File: "sender/rules/settle.go", Tests: []string{"./sender/memory"}, Run: "^TestStore$/^life$",
		Old: "o.Gone == sender.GoneStops && !s.Closing", New: "o.Gone == sender.GoneStops",
	},
	{
		Name: "410 stops what is closing, on SQLite",
		File: "sender/sqlite/record.go", Tests: []string{"./sender/sqlite"}, Run: "^TestStore$/^immediate$/^life$",
		Old: "Closing: sub.status == statusClosing", New: "Closing: false",
	},
	{
		Name: "the bounds of policies are not checked",
		File: "sender/subscribe.go", Tests: []string{"./sender"}, Run: "^TestOwnPolicyRefused$",
		Old: "!n.Settings.samePolicy(&s.Settings)", New: "!n.Settings.samePolicy(&n.Settings)",
	},
	{
		Name: "an owner whose policy is beyond narrower bounds can change nothing else",
		File: "sender/subscribe.go", Tests: []string{"./sender"}, Run: "^TestOwnPolicyBeyondNarrowerBounds$",
		Old: "!n.Settings.samePolicy(&s.Settings)", New: "n.Settings.HasPolicy()",
	},
	{
		Name: "narrower bounds do not hold for horizons that are stored",
		File: "sender/dispatch/own_policy.go", Tests: []string{"./sender/dispatch"}, Run: "^TestOwnPolicyDelivery$",
		Old: "min(s.Horizon, bounds.MaxHorizon)", New: "s.Horizon",
	},
	{
		Name: "an outage of ours stands still by the horizon of all",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"}, Run: "^TestOwnPolicyDelivery$",
		Old: "mostHorizonsStood * p.Backoff.WithDefaults().Horizon", New: "mostHorizonsStood * (Policy{}).Backoff.WithDefaults().Horizon",
	},
}
