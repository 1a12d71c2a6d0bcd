// Package child runs the processes that a measurement is made of. Parent and
// child exchange lines of JSON over the child's standard input and output, so that
// a child notices at once when its parent has gone.
package child
