// Package soak runs the whole library under load and faults for a time, in one
// process with real connections, real clocks and a real database, and checks the
// invariants all along.
//
// Publishers publish, in transactions of their own and of the library's, some of
// which roll back; two dispatchers deliver, and are stopped, cut off and restarted
// all the time; endpoints fail in every way that an endpoint can, in front of real
// receivers that apply what they get; an operator pauses, resumes, rotates, redelivers,
// replays, disables, closes and registers; jobs run; a reader follows the feed; and
// what is past its time is pruned. All of it is drawn from a seed. Since goroutines
// and the network have their own will, a seed gives the same kind of run again, and
// not the same run.
//
// A witness stands beside it. It knows what was acknowledged to publishers, what
// came over the wire, what receivers' databases have, and what the library tells of
// it, and reports where these disagree. It shares no rule with the library.
//
// # Phases
//
// A cycle is: load with faults for a time; then the faults stop, what is held is
// resumed and what was given up is replayed, until all is delivered; then everything
// is stopped, checked to the last event, pruned, and compared. [Run] goes through a
// short cycle first, to warm up, and takes its figures after it; and then through the
// long one. What is left after the second that was not left after the first is
// growth, and a finding.
package soak
