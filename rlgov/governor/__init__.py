"""The runtime loop: the environment and a policy beside a live job, without a learner."""
