"""Jobs: the step events of a training process, real or synthetic."""
