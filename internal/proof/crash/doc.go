// Package crash kills processes that send and receive with kill -9, and checks that
// they have kept their promises.
//
// [Run] has several processes publish, dispatch, run jobs and receive on one database,
// SQLite or PostgreSQL. Each dies at one of [Points]: before, in the middle of, during or
// after the commit of a transaction that publishes, expands, claims, records,
// dead-letters, disables, replays, completes a job or applies an event, or somewhere on
// the wire. Nothing is compiled into the library for that. The process kills itself in the
// hooks of net/http and of the dispatcher, or in a wrapper around its database driver or
// its connection to the database (package edge). The wrapper recognises a transaction by
// its statements. To cut a body, the endpoint kills the process.
//
// One more process is stopped for longer than its leases last, and goes on, again and
// again.
//
// The parent checks against its own records. They have the acknowledged publishes,
// rollbacks and jobs, which each process tells the parent before it goes on. They also have
// the received POSTs, with their bytes and signatures. An error names a broken invariant:
//
//   - I1: a committed event is never lost.
//   - I2: an event that was rolled back is never posted.
//   - I3: posts on the wire are at most the attempts recorded, one for each number.
//   - I4: a duplicate has the same bytes, and a signature of its own time.
//   - I5: a result that came after its lease was lost has changed nothing.
//   - I6: a delivered event is not attempted again, unless it is replayed.
//   - I7: attempt numbers rise by one.
//   - I10: an event has an effect if and only if it has a marker, and one of each; no
//     older effect comes after a newer one.
//   - I11: no 200 comes before the commit.
//   - I12: nothing live is left at the end, and no count of it.
//
// [Database] kills all processes of a PostgreSQL server instead, again and again, while the
// same processes work on it. They go on by themselves when the server is back.
//
// Both have a [Defect] that they must find, to prove that they can.
//
// The processes are this program, started again: a program that calls Run or Database
// calls [Child] first. The tests kill one process at each point, and the database five
// times. For more kills:
//
//	SUREHOOK_KILLS=700 SUREHOOK_DATABASE_KILLS=200 go test -v -timeout 2h ./internal/proof/crash
package crash
