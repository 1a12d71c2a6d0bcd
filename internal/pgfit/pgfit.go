// Package pgfit says which PostgreSQL servers a store can work with.
package pgfit

import "fmt"

// Oldest is the first version that is supported, as server_version_num.
const Oldest = 150000

// NeonTimeline is what a server of Neon tells of itself, and empty on any other server. Neon turns
// fsync and full_page_writes off: commits are kept by other servers
// (https://neon.com/docs/reference/compatibility). A branch that is restored has another one.
const NeonTimeline = `coalesce(current_setting('neon.timeline_id', true), '')`

// Check returns an error that says what is wrong with the server, and what would be right.
// row reads one row. Its own error is returned as it is, as err.
func Check(row func(query string, to ...any) error) (unfit, err error) {
	var version int
	var fsync, neon string
	if err := row(`SELECT current_setting('server_version_num')::int, current_setting('fsync'), `+NeonTimeline, &version, &fsync, &neon); err != nil {
		return nil, err
	}
	switch {
	case version < Oldest:
		return fmt.Errorf("the server's version is %d: PostgreSQL %d or newer is needed", version/10000, Oldest/10000), nil
	case fsync != "on" && neon == "":
		return fmt.Errorf("fsync is %s: set it to on: a commit could be lost with the power", fsync), nil
	}
	return nil, nil
}
