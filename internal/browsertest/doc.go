// Package browsertest opens pages in a Chromium, for tests of what people see. Can a page
// be read on wide and narrow screens, and in light and dark colours? Can it be used by
// keyboard? What does its script do? One browser is enough for all tests of a package:
//
//	br := browsertest.New(t)
//	tab := br.Tab(t)
//	tab.Open(server.URL)
//	tab.Looks("first")
//
// Without a browser the test is skipped aloud, or fails if SUREHOOK_REQUIRE, a list with
// commas, names "browser". Looks also asks axe-core, which looks for what keeps people from
// using a page. It comes from the npm registry, once, and is kept in the user's cache. Where
// it cannot be had the test says so and goes on without it, or fails if SUREHOOK_REQUIRE
// names "axe".
//
// With a folder in SUREHOOK_SHOTS a picture of every page that is looked at is kept there.
package browsertest
