"""Where a verb runs: the device and the threads that the user asked for."""

from qkv.errors import ConfigError

__all__ = ["prepare_device"]


def prepare_device(device: str | None, threads: int | None) -> str:
    """The device to use ("cuda" where there is one, if not given), after setting the CPU threads."""
    import torch

    if threads is not None:
        if threads < 1:
            raise ConfigError(f"--threads {threads}", expected="a whole number from 1")
        torch.set_num_threads(threads)
    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(
            f"--device {device} cannot be used ({str(error).splitlines()[0]})", expected="cpu, cuda, mps ..."
        ) from None
    return device
