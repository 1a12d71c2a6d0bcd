package storetest

import (
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// Store is all that the suite checks: what each part of the sending side needs of a database.
type Store[Tx any] interface {
	sender.Store[Tx]
	dispatch.Store
	history.Store
	replay.Store
	feed.Store
}
