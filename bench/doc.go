// Command bench runs one workload on Reprise and on other queue servers, on
// this machine, and writes the comparison down.
//
//	bench run     installs, measures, saves raw results, writes the document
//	bench report  writes the document again from saved results
//	bench smoke   a few seconds of Reprise and beanstalkd, to see that all works
//	bench list    the systems and phases there are
//
// It is a module of its own so that the clients and servers of others are no
// dependencies of the product. `make peers` builds and runs it.
//
// All systems are driven by the same generator through their official Go
// clients, Reprise through its own package client. Package system knows the
// servers, package measure the phases, package result the figures.
package main
