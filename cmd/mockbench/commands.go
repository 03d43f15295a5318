package main

import (
	"io"

	"mockbench/cmd/mockbench/aiscmd"
	"mockbench/cmd/mockbench/calibratecmd"
	"mockbench/cmd/mockbench/comparecmd"
	"mockbench/cmd/mockbench/completion"
	"mockbench/cmd/mockbench/configcmd"
	"mockbench/cmd/mockbench/doctor"
	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/profilescmd"
	"mockbench/cmd/mockbench/replaycmd"
	"mockbench/cmd/mockbench/sweepcmd"
	"mockbench/cmd/mockbench/viewcmd"
)

// commands is every command besides the run itself, in the order of the help. Help, completion and the documentation
// are made from it.
func commands() []flags.Command {
	return []flags.Command{
		{Name: "replay", Args: "TRACE", Summary: "A trace or a synthetic load on simulated time", Flags: replaycmd.FlagSet, Run: replaycmd.Main},
		{Name: "compare", Args: "A.json B.json", Summary: "What got better and what worse from one report to another",
			Flags: comparecmd.FlagSet, Run: comparecmd.Main},
		{Name: "sweep", Args: "TRACE", Summary: "A replay under all combinations of some settings",
			Flags: sweepcmd.FlagSet, Run: sweepcmd.Main},
		{Name: "tune", Args: "TRACE", Summary: "The smallest fleet, or setting, that keeps service level objectives",
			Flags: sweepcmd.TuneFlagSet, Run: sweepcmd.TuneMain},
		{Name: "view", Args: "FILE", Summary: "A recording in the screen, with a time slider", Flags: viewcmd.FlagSet, Run: viewcmd.Main},
		{Name: "config", Args: "show|check", Summary: "What settings come to and where each comes from; checks of files",
			Words: configcmd.Words, WorkerFlags: true, Run: configcmd.Main},
		{Name: "calibrate", Args: "CSV", Summary: "A table of pass times from measurements, or from a running endpoint", Flags: calibratecmd.FlagSet, Run: calibratecmd.Main},
		{Name: "profiles", Args: "VERB", Summary: "Profiles: list, show, save, check and edit them", Words: profilescmd.Verbs(),
			WorkerFlags: true, Run: profilescmd.Main},
		{Name: "doctor", Args: "[FLAGS]", Summary: "Why a frontend does not list, route to or hear workers, and what to do",
			WorkerFlags: true, Run: doctor.Main},
		{Name: "ais", Args: "fetch|list|explain", Summary: "Measured kernel latencies: fetch them, what they cover, the operators of a pass",
			Words: aiscmd.Verbs(), Flags: aiscmd.FlagSet, Run: aiscmd.Main},
		{Name: "completion", Args: "SHELL", Summary: "Script that completes command lines in bash, zsh, fish or powershell",
			Words: completion.Shells, Run: completion.Main},
		{Name: "man", Summary: "The manual page, for man -l -", Run: man},
		{Name: "help", Args: "[COMMAND]", Summary: "This text, or the help of a command", Run: help},
		{Name: "__complete", Hidden: true, Run: completion.Answer(commands)},
	}
}

// help shows the help of the program or of a command.
func help(args []string, stdout, stderr io.Writer) int {
	command, err := flags.FindCommand(commands(), args)
	switch {
	case err != nil:
		return flags.Fail(stderr, "mockbench help", err)
	case command == nil || command.Name == "help":
		flags.Help(stdout, commands())
		return 0
	}
	return command.Run([]string{"--help"}, stdout, stderr)
}

// man prints the manual page.
func man(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] != "--help" {
		return flags.Fail(stderr, "mockbench man", &flags.UsageError{Text: "unexpected argument " + args[0], Kind: flags.UnknownFlag})
	}
	if len(args) > 0 {
		io.WriteString(stdout, "usage: mockbench man | man -l -\n")
		return 0
	}
	flags.Man(stdout, commands())
	return 0
}
