"""Tables and plots of what a run did."""
