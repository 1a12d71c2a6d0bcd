package storetest

import "time"

// AwaitLess has a process that runs the suite on a broken store not wait long for attempts
// that never come.
func AwaitLess() { standsStill = 2 * time.Second }
