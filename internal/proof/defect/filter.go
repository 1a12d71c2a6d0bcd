package defect

// ofFilters are defects in who gets an event by its content.
var ofFilters = []Defect{
	{
		Name: "filters decide by what was published, whatever their subscription is pinned to",
		File: "sender/rules/filter.go", Tests: []string{"./sender/memory"}, Run: "^TestStore$/^filter$",
		Old: "m, _ := c.at(a.Pinned)", New: "m := made{body: c.Body}",
	},
	{
		Name: "what cannot be made in an older version is lost to filters",
		File: "sender/rules/filter.go", Tests: []string{"./sender/memory"}, Run: "^TestStore$/^filter$",
		Old: "return m.failed && a.Filter.Unreadable() == nil || a.Filter.Match(m.body)", New: "return a.Filter.Match(m.body)",
	},
	{
		Name: "a body that was made is taken for each older version",
		File: "sender/rules/filter.go", Tests: []string{"./sender/memory"}, Run: "^TestStore$/^filter$",
		Old: "if m.from <= pinned && pinned <= m.to {", New: "if m.from <= pinned || pinned <= m.to {",
	},
	{
		Name: "why an event was not delivered is told of what was published",
		File: "sender/history/whyof.go", Tests: []string{"./sender/history"}, Run: "^TestFiltersAndPayloadVersions$",
		Old: "convert.Body(e.Type, e.Body, s.Settings.PayloadVersion)", New: "convert.Body(e.Type, e.Body, \"9999-12-31\")",
	},
	{
		Name: "older versions are made while SQLite's write lock is held",
		File: "sender/sqlite/filter.go", Tests: []string{"./sender/sqlite"}, Run: "^TestLargeBodiesAreReadBefore$",
		Old: "if err != nil || ev.content.Older(sub.asked.Pinned) {", New: "if err != nil || ev.content.Older(sub.asked.Pinned) && ev.size > smallBody {",
	},
	{
		Name: "the answers of filters that are asked early are taken by other subscriptions, on SQLite",
		File: "sender/sqlite/filter.go", Tests: []string{"./sender/sqlite"}, Run: "^TestBodiesThatComeWithTheirEvents$",
		Old: "ev.wanted |= 1 << a.at", New: "ev.wanted |= 2 >> a.at",
	},
	{
		Name: "under the expander's lock older versions are made of all events, on PostgreSQL",
		File: "sender/postgres/expand.go", Tests: []string{"./sender/postgres"}, Run: "^TestConversionsOfAStepAreBounded$",
		Old: "if converted > convertedNow {", New: "if converted < 0 {",
	},
}
